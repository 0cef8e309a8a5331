#include "rotrnn/board/report.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "rotrnn/board/server/assets.h"
#include "rotrnn/plot/chart.h"

namespace rotrnn::board {
namespace {

using Json = nlohmann::json;

// 'sha256-…' of a script or style that stands in the page itself: nothing else is run.
std::string hash_source(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  unsigned char base64[4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1];
  EVP_EncodeBlock(base64, digest, sizeof digest);
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64));
}

// JSON in a page: no markup can begin in it.
std::string inert(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string data_text(Api& api, const Found& found, const std::string& title,
                      const std::string& written) {
  std::string out = fmt::format(R"({{"title":{},"written":{},"list":{},"runs":{{)",
                                Json(title).dump(), Json(written).dump(), api.runs());
  bool first = true;
  for (const RunInfo& run : found.runs) {
    SeriesQuery query;
    query.points = 800;
    fmt::format_to(std::back_inserter(out), R"({}"{}":{{"curves":{},"detail":{}}})",
                   first ? "" : ",", run.id, api.series(run.id, query).value_or("{}"),
                   api.detail(run.id, 40).value_or("{}"));
    first = false;
  }
  out += R"(},"comparisons":[)";
  first = true;
  for (const CompareInfo& info : found.comparisons) {
    const auto table = api.comparison(info.id);
    if (!table) continue;
    out += (first ? "" : ",") + *table;
    first = false;
  }
  return out + "]}";
}

// For readers without scripts.
std::string plain_text(const std::vector<Picture>& pictures) {
  std::string out = "<noscript>\n";
  for (const Picture& picture : pictures) {
    out += fmt::format("<h2>{}</h2>\n{}", escape_xml(picture.title), picture.svg);
  }
  return out + "</noscript>\n";
}

}  // namespace

Report make_report(Api& api, const std::string& title, const std::string& written) {
  const Found found = api.found();
  if (found.runs.empty() && found.comparisons.empty()) {
    throw std::runtime_error(
        "report: there are no runs; a run folder has a file metrics.jsonl (docs/training.md)");
  }
  Report out;
  std::vector<ReportRun> runs;
  for (const RunInfo& info : found.runs) {
    if (auto metrics = api.metrics(info.id)) runs.push_back({info, std::move(*metrics)});
  }
  out.runs = runs.size();
  out.pictures = draw_pictures(runs);

  const std::string style = std::string(asset("dygraph.min.css")) + std::string(asset("style.css"));
  std::string scripts, hashes;
  for (const char* name : {"dygraph.min.js", "curves.js", "details.js", "view.js", "report.js"}) {
    const std::string_view text = asset(name);
    scripts += fmt::format("<script>{}</script>\n", text);
    hashes += " " + hash_source(text);
  }
  out.html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src{}; "
      "style-src {}; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}<div id=\"app\"></div>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n{}</body>\n</html>\n",
      hashes, hash_source(style), escape_xml(title), style, plain_text(out.pictures),
      inert(data_text(api, found, title, written)), scripts);
  return out;
}

}  // namespace rotrnn::board
