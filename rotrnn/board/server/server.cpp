#include "rotrnn/board/server/server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <stdexcept>

#include "rotrnn/board/server/assets.h"
#include "rotrnn/board/server/socket_stream.h"
#include "rotrnn/board/server/token.h"

namespace rotrnn::board {
namespace {

constexpr size_t kThreads = 16;
constexpr int kWaiting = 1024;  // connections that the system keeps for us

// No script, style or picture but ours, no frames around us, nothing sent elsewhere.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct Page {
  const char *path, *asset, *type;
};
constexpr Page kPages[] = {
    {"/", "board.html", "text/html; charset=utf-8"},
    {"/style.css", "style.css", "text/css; charset=utf-8"},
    {"/dygraph.css", "dygraph.min.css", "text/css; charset=utf-8"},
    {"/dygraph.js", "dygraph.min.js", "text/javascript; charset=utf-8"},
    {"/curves.js", "curves.js", "text/javascript; charset=utf-8"},
    {"/details.js", "details.js", "text/javascript; charset=utf-8"},
    {"/view.js", "view.js", "text/javascript; charset=utf-8"},
    {"/live.js", "live.js", "text/javascript; charset=utf-8"},
    {"/favicon.ico", "icon.svg", "image/svg+xml"},
};

// httplib with our limits on a connection: one request each, so that none waits behind an idle one.
class LimitedServer : public httplib::Server {
 public:
  int listening_socket() const { return svr_sock_; }

 private:
  bool process_and_close_socket(socket_t sock) override {
    SocketStream stream(sock);
    bool closed = false;
    const bool good =
        stream.wait() && process_request(stream, true, closed, [](auto& request) {
          request.ranges.clear();  // many ranges of one file would make an answer of any size
          request.headers.erase("Accept-Encoding");  // compressing costs more than it saves here
        });
    ::shutdown(sock, SHUT_RDWR);
    ::close(sock);
    return good;
  }
};

double number_or(const httplib::Request& request, const char* name, double otherwise) {
  const std::string text = request.get_param_value(name);
  double value = 0;
  const auto got = std::from_chars(text.data(), text.data() + text.size(), value);
  return got.ec == std::errc() && value == value ? value : otherwise;
}

void answer(httplib::Response& response, const std::optional<std::string>& json) {
  response.status = json ? 200 : 404;
  response.set_content(json ? *json : R"({"error":"there is no such run"})", "application/json");
}

void refuse(httplib::Response& response, int status, const char* text) {
  response.status = status;
  response.set_content(text, "text/plain; charset=utf-8");
}

std::string without_port(const std::string& host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool is_loopback(const std::string& host) {
  const auto digits = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (digits && host.starts_with("127."));
}

bool is_local_name(const std::string& header) {
  const std::string host = without_port(header);
  return host == "[::1]" || (host != "::1" && is_loopback(host));
}

struct Server::Impl {
  Impl(Api& api, const ServerOptions& options) : api(api), options(options) {
    if (options.token || !is_loopback(options.host)) token = make_token();
    http.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    http.set_tcp_nodelay(true);
    // Without SO_REUSEPORT, which httplib sets: two boards would share a port.
    http.set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http.set_default_headers({{"Content-Security-Policy", kPolicy},
                              {"X-Content-Type-Options", "nosniff"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Resource-Policy", "same-origin"},
                              {"Cross-Origin-Opener-Policy", "same-origin"},
                              {"Cache-Control", "no-store"}});
    http.set_pre_routing_handler(
        [this](const auto& request, auto& response) { return guard(request, response); });
    http.set_exception_handler([](const auto&, auto& response, const std::exception_ptr&) {
      refuse(response, 500, "the board could not answer this request; it is still running\n");
    });
    add_routes();
    bind();
  }

  void add_routes() {
    for (const Page& page : kPages) {
      http.Get(page.path, [page](const auto&, auto& response) {
        const std::string_view bytes = asset(page.asset);
        response.set_content(bytes.data(), bytes.size(), page.type);
      });
    }
    http.Get("/api/runs", [this](const auto&, auto& response) { answer(response, api.runs()); });
    http.Get("/api/series", [this](const auto& request, auto& response) {
      SeriesQuery query;
      query.from = number_or(request, "from", query.from);
      query.to = number_or(request, "to", query.to);
      const double points = number_or(request, "points", static_cast<double>(query.points));
      query.points = static_cast<size_t>(std::clamp(points, 2.0, 1e6));
      query.since = request.get_param_value("since");
      answer(response, api.series(request.get_param_value("run"), query));
    });
    http.Get("/api/detail", [this](const auto& request, auto& response) {
      answer(response, api.detail(request.get_param_value("run")));
    });
    http.Get("/api/compare", [this](const auto& request, auto& response) {
      answer(response, api.comparison(request.get_param_value("id")));
    });
  }

  void bind() {
    const std::string where = fmt::format("{}:{}", options.host, options.port);
    errno = 0;
    const bool bound = options.port == 0 ? (port = http.bind_to_any_port(options.host)) > 0
                                         : http.bind_to_port(options.host, port = options.port);
    if (!bound) {
      const int error = errno;
      throw std::runtime_error(
          error == EADDRINUSE
              ? fmt::format("board: {} is in use; stop what listens there, or choose another by "
                            "--port (0: any that is free)",
                            where)
              : fmt::format("board: cannot listen on {}: {}; --host takes an address of this "
                            "machine, --port below 1024 needs privileges",
                            where, error ? std::strerror(error) : "no such address"));
    }
    ::listen(http.listening_socket(), kWaiting);  // httplib asks for five
  }

  std::string cookie() const { return fmt::format("rotrnn_board_{}", port); }

  httplib::Server::HandlerResponse guard(const httplib::Request& request,
                                         httplib::Response& response) const {
    constexpr auto handled = httplib::Server::HandlerResponse::Handled;
    if (request.method != "GET" && request.method != "HEAD") {
      response.set_header("Allow", "GET, HEAD");
      refuse(response, 405, "the board only answers, by GET and HEAD\n");
      return handled;
    }
    if (is_loopback(options.host) && !is_local_name(request.get_header_value("Host"))) {
      refuse(response, 403, "this board answers to localhost and 127.0.0.1 alone\n");
      return handled;
    }
    if (token.empty()) return httplib::Server::HandlerResponse::Unhandled;
    if (request.path == "/" && same_token(request.get_param_value("token"), token)) {
      response.status = 303;  // the token leaves the address bar
      response.set_header("Location", "/");
      response.set_header("Set-Cookie",
                          fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie(), token));
      return handled;
    }
    const std::string sent = request.get_header_value("Authorization");
    const bool known =
        same_token(cookie_value(request.get_header_value("Cookie"), cookie()), token) ||
        same_token(sent, "Bearer " + token);
    if (known) return httplib::Server::HandlerResponse::Unhandled;
    refuse(response, 403,
           "this board asks for a token: open the address that `rotrnn board` printed\n");
    return handled;
  }

  Api& api;
  ServerOptions options;
  std::string token;
  int port = 0;
  bool ran = false;
  LimitedServer http;
};

Server::Server(Api& api, const ServerOptions& options)
    : impl_(std::make_unique<Impl>(api, options)) {}

Server::~Server() {
  stop();
  if (!impl_->ran) ::close(impl_->http.listening_socket());
}

int Server::port() const {
  return impl_->port;
}

std::string Server::address() const {
  std::string host = impl_->options.host;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  const std::string query = impl_->token.empty() ? "" : "?token=" + impl_->token;
  return fmt::format("http://{}:{}/{}", host, impl_->port, query);
}

const std::string& Server::token() const {
  return impl_->token;
}

void Server::run() {
  impl_->ran = true;
  impl_->http.listen_after_bind();
}

void Server::stop() {
  impl_->http.stop();
}

}  // namespace rotrnn::board
