#include "rotrnn/board/server/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "rotrnn/board/server/assets.h"
#include "rotrnn/board/server/token.h"
#include "tests/support/folder.h"

namespace rotrnn::board {
namespace {

namespace fs = std::filesystem;

// Bytes to a port of this machine and all that comes back; no library between.
std::string send_bytes(int port, const std::string& bytes) {
  const int s = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  timeval patience{20, 0};
  ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::string out;
  if (::connect(s, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
    ::send(s, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(s, SHUT_WR);
    char buffer[8192];
    for (ssize_t n; (n = ::recv(s, buffer, sizeof buffer, 0)) > 0;) {
      out.append(buffer, static_cast<size_t>(n));
    }
  }
  ::close(s);
  return out;
}

std::string request(const std::string& path, const std::string& headers = "Host: localhost\r\n",
                    const std::string& method = "GET") {
  return fmt::format("{} {} HTTP/1.1\r\n{}\r\n", method, path, headers);
}

int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0;
}

class Running {
 public:
  explicit Running(ServerOptions options = {}) : api_({folder_.path()}) {
    fs::create_directories(folder_ / "run");
    std::ofstream(folder_ / "run/metrics.jsonl") << "{\"step\":1,\"split\":\"train\",\"loss\":5}\n";
    std::ofstream(folder_ / "secret.txt") << "SECRET";
    options.port = 0;
    server_ = std::make_unique<Server>(api_, options);
    thread_ = std::thread([this] { server_->run(); });
    while (status_of(send_bytes(server_->port(), request("/"))) == 0) std::this_thread::yield();
  }
  ~Running() {
    server_->stop();
    thread_.join();
  }

  std::string get(const std::string& bytes) const { return send_bytes(server_->port(), bytes); }
  Server& server() { return *server_; }
  Api& api() { return api_; }
  const test::Folder& folder() const { return folder_; }

 private:
  test::Folder folder_;
  Api api_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST(BoardServer, ServesPagesAndDataUnderAStrictPolicy) {
  Running board;
  const std::string page = board.get(request("/"));
  EXPECT_EQ(status_of(page), 200);
  EXPECT_NE(page.find("script-src 'self'"), std::string::npos);
  EXPECT_EQ(page.find("unsafe-inline"), std::string::npos);
  EXPECT_NE(page.find("X-Content-Type-Options: nosniff"), std::string::npos);
  // Everything a page names is served, and nothing is written into it that runs.
  const std::regex link("(?:src|href)=\"([^\"]+)\"");
  int links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++links) {
    EXPECT_EQ(status_of(board.get(request((*at)[1]))), 200) << (*at)[1];
  }
  EXPECT_GE(links, 7);
  EXPECT_FALSE(std::regex_search(page, std::regex("<script>|\\son[a-z]+=|javascript:")));
  const std::string runs = board.get(request("/api/runs"));
  EXPECT_NE(runs.find("application/json"), std::string::npos);
  EXPECT_NE(runs.find("\"name\":\"run\""), std::string::npos);
}

TEST(BoardServer, NothingOutsideTheListIsServed) {
  Running board;
  for (const char* path :
       {"/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
        "/secret.txt", "/run/metrics.jsonl", "/api/../secret.txt", "/api/series?run=../secret.txt",
        "/api/series?run=..%2Frun", "/api/series?run=run", "/api/series?run=%00",
        "/api/detail?run=/etc/passwd", "/api/compare?id=..", "/api/series", "/\\..\\secret.txt",
        "/.git/config", "/board.html", "/api/runs/../../secret.txt"}) {
    const std::string answer = board.get(request(path));
    EXPECT_GE(status_of(answer), 400) << path;
    EXPECT_EQ(answer.find("SECRET"), std::string::npos) << path;
    EXPECT_EQ(answer.find("root:"), std::string::npos) << path;
  }
}

TEST(BoardServer, AnswersToItsOwnNameAndByGetAlone) {
  Running board;
  for (const char* host : {"evil.example", "evil.example:6060", "127.0.0.1.evil.example",
                           "localhost.evil.example", "", "[::2]", "10.0.0.1"}) {
    EXPECT_EQ(status_of(board.get(request("/", fmt::format("Host: {}\r\n", host)))), 403) << host;
  }
  EXPECT_EQ(status_of(board.get(request("/", ""))), 403);
  for (const char* host : {"localhost", "localhost:1", "127.0.0.1:80", "[::1]:5"}) {
    EXPECT_EQ(status_of(board.get(request("/", fmt::format("Host: {}\r\n", host)))), 200) << host;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    const std::string headers = "Host: localhost\r\nContent-Length: 5\r\n";
    EXPECT_EQ(status_of(board.get(request("/", headers, method) + "hello")), 405) << method;
  }
  const std::string head = board.get(request("/", "Host: localhost\r\n", "HEAD"));
  EXPECT_EQ(status_of(head), 200);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST(BoardServer, SurvivesWhatIsNoRequest) {
  Running board;
  std::string headers = "Host: localhost\r\n";
  for (int i = 0; i < 200'000; ++i) headers += fmt::format("X-{}: y\r\n", i);
  std::string ranges = "Host: localhost\r\nRange: bytes=0-";
  for (int i = 0; i < 1500; ++i) ranges += ",0-";
  for (const std::string& bytes :
       {std::string(), std::string("\0\1\2\3", 4), std::string("GET\r\n\r\n"),
        std::string(100'000, 'A'), "GET /" + std::string(50'000, 'a') + " HTTP/1.1\r\n\r\n",
        request("/", headers), request("/?" + std::string(3000, '&')), request("/%zz%"),
        request("/api/series?run=x&from=nan&to=inf&points=-1"),
        request("/api/series?points=1e999&from=1e308&since=" + std::string(5000, '9'))}) {
    board.get(bytes);
  }
  // Ranges are not for us: the whole, once.
  const std::string answer = board.get(request("/dygraph.js", ranges + "\r\n"));
  EXPECT_LT(answer.size(), asset("dygraph.min.js").size() + 4000);
  EXPECT_EQ(status_of(board.get(request("/api/runs"))), 200);
}

TEST(BoardServer, AThousandRequestsAtOnce) {
  Running board;
  const std::string id =
      nlohmann::json::parse(board.api().runs()).at("runs").at(0).at("id").get<std::string>();
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 1000; ++i) {
    threads.emplace_back([&, i] {
      const std::string path = i % 2 ? "/api/runs" : "/api/series?run=" + id;
      good += status_of(board.get(request(path))) == 200;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 1000);
  EXPECT_EQ(status_of(board.get(request("/"))), 200);
}

TEST(BoardServer, WantsItsTokenWhenAsked) {
  ServerOptions options;
  options.token = true;
  Running board(options);
  const std::string token = board.server().token();
  EXPECT_EQ(token.size(), 32u);
  EXPECT_NE(board.server().address().find("?token=" + token), std::string::npos);
  const std::string host = "Host: localhost\r\n";
  EXPECT_EQ(status_of(board.get(request("/"))), 403);
  EXPECT_EQ(status_of(board.get(request("/?token=" + token.substr(1)))), 403);
  EXPECT_EQ(status_of(board.get(request("/api/runs?token=" + token))), 403);
  const std::string first = board.get(request("/?token=" + token));
  EXPECT_EQ(status_of(first), 303);
  EXPECT_NE(first.find("HttpOnly; SameSite=Strict"), std::string::npos);
  const std::string cookie = fmt::format("rotrnn_board_{}={}", board.server().port(), token);
  EXPECT_NE(first.find(cookie), std::string::npos);
  EXPECT_EQ(status_of(board.get(request("/api/runs", host + "Cookie: a=b; " + cookie + "\r\n"))),
            200);
  EXPECT_EQ(
      status_of(board.get(request("/api/runs", host + "Authorization: Bearer " + token + "\r\n"))),
      200);
  EXPECT_EQ(status_of(board.get(request("/", host + "Cookie: " + cookie + "0\r\n"))), 403);
  EXPECT_EQ(status_of(board.get(request("/", host + "Cookie: x" + cookie + "\r\n"))), 403);
}

TEST(BoardServer, OtherAddressesAlwaysWantAToken) {
  const test::Folder folder;
  Api api({folder.path()});
  ServerOptions options;
  options.host = "0.0.0.0";
  options.port = 0;
  EXPECT_EQ(Server(api, options).token().size(), 32u);
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
  EXPECT_FALSE(is_loopback("127.0.0.1.evil.example"));
}

TEST(BoardServer, APortInUseIsNamed) {
  Running board;
  ServerOptions options;
  options.port = board.server().port();
  const std::string message =
      test::message_of<std::runtime_error>([&] { Server second(board.api(), options); });
  EXPECT_NE(message.find("in use"), std::string::npos) << message;
  EXPECT_NE(message.find("--port"), std::string::npos) << message;
}

TEST(Token, IsRandomAndComparedWhole) {
  EXPECT_NE(make_token(), make_token());
  EXPECT_TRUE(same_token("abc", "abc"));
  EXPECT_FALSE(same_token("abc", "abd"));
  EXPECT_FALSE(same_token("abc", "ab"));
  EXPECT_FALSE(same_token("", "a"));
  EXPECT_EQ(cookie_value("a=1; b=2;c=3", "b"), "2");
  EXPECT_EQ(cookie_value("a=1; b=2;c=3", "c"), "3");
  EXPECT_EQ(cookie_value("ab=1", "b"), "");
  EXPECT_EQ(cookie_value("", "b"), "");
}

}  // namespace
}  // namespace rotrnn::board
