#include "tests/browser/browser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>

#include "longhaul/base/base64.h"

namespace longhaul::testing {
namespace {

using nlohmann::json;

bool is_program(const char* name) {
  return ::access(fmt::format("/usr/bin/{}", name).c_str(), X_OK) == 0;
}

}  // namespace

bool Browser::is_there() {
  return is_program("chromium") && is_program("chromedriver");
}

Browser::Browser() : driver_({"/usr/bin/chromedriver", "--port=0"}, folder_.file("driver")) {
  if (!driver_.prints("was started successfully")) {
    ADD_FAILURE() << "chromedriver does not start: " << driver_.output() << driver_.errors();
    return;
  }
  std::smatch port;
  const std::string said = driver_.output();
  if (std::regex_search(said, port, std::regex("successfully on port ([0-9]+)"))) port_ = std::stoi(port[1]);
  json arguments = {"--headless=new",    "--disable-gpu",          "--disable-dev-shm-usage",
                    "--hide-scrollbars", "--window-size=1200,900", "--user-data-dir=" + folder_.file("profile")};
  if (::geteuid() == 0) arguments.push_back("--no-sandbox");  // root has none
  const json options = {{"args", arguments}, {"binary", "/usr/bin/chromium"}};
  const json made = call("/session", {{"capabilities",
                                       {{"alwaysMatch",
                                         {{"goog:chromeOptions", options},
                                          {"goog:loggingPrefs", {{"browser", "ALL"}}},
                                          {"timeouts", {{"script", 90000}}}}}}}});
  if (made.contains("sessionId")) session_ = "/session/" + made["sessionId"].get<std::string>();
}

Browser::~Browser() {
  httplib::Client client("127.0.0.1", port_);
  if (!session_.empty()) client.Delete(session_);
}

json Browser::call(const std::string& path, const json& body) {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(120);
  const auto reply = client.Post(path, body.dump(), "application/json");
  if (!reply) {
    ADD_FAILURE() << path << ": the driver does not answer";
    return {};
  }
  json value = json::parse(reply->body)["value"];
  if (reply->status != 200) ADD_FAILURE() << path << ": " << value.dump().substr(0, 1000);
  return value;
}

json Browser::execute(const std::string& command, const json& parameters) {
  return call(session_ + "/goog/cdp/execute", {{"cmd", command}, {"params", parameters}});
}

void Browser::open(const std::string& url) {
  call(session_ + "/url", {{"url", url}});
}

json Browser::run(const std::string& script) {
  return call(session_ + "/execute/sync", {{"script", script}, {"args", json::array()}});
}

bool Browser::until(const std::string& condition) {
  const std::string script = fmt::format(
      "const done = arguments[0], end = Date.now() + 60000;"
      "(function poll() {{ let is = false; try {{ is = !!({}); }} catch (error) {{ is = false; }}"
      " if (is || Date.now() > end) done(is); else setTimeout(poll, 20); }})();",
      condition);
  return call(session_ + "/execute/async", {{"script", script}, {"args", json::array()}}) == true;
}

json Browser::place_of(const std::string& selector) {
  return run(
      fmt::format("const e = document.querySelector('{}'); e.scrollIntoView({{block: 'center'}});"
                  "const r = e.getBoundingClientRect(); return {{x: r.x, y: r.y, w: r.width, h: r.height}};",
                  selector));
}

void Browser::act(const json& actions) {
  call(session_ + "/actions", {{"actions", json::array({{{"type", "pointer"},
                                                         {"id", "mouse"},
                                                         {"parameters", {{"pointerType", "mouse"}}},
                                                         {"actions", actions}}})}});
}

namespace {

json move(double x, double y) {
  return {{"type", "pointerMove"},
          {"duration", 10},
          {"x", static_cast<int>(x)},
          {"y", static_cast<int>(y)},
          {"origin", "viewport"}};
}

json button(const char* what) {
  return {{"type", what}, {"button", 0}};
}

}  // namespace

void Browser::drag(const std::string& selector, double from_x, double to_x) {
  const json place = place_of(selector);
  const auto at = [&](const char* name) { return place[name].get<double>(); };
  const double y = at("y") + at("h") / 2, x = at("x"), width = at("w");
  act({move(x + from_x * width, y), button("pointerDown"), move(x + (from_x + to_x) / 2 * width, y),
       move(x + to_x * width, y), button("pointerUp")});
}

void Browser::point_at(const std::string& selector, double x) {
  const json place = place_of(selector);
  const auto at = [&](const char* name) { return place[name].get<double>(); };
  act({move(at("x") + x * at("w") - 3, at("y") + at("h") / 2), move(at("x") + x * at("w"), at("y") + at("h") / 2)});
}

void Browser::double_click(const std::string& selector) {
  const json place = place_of(selector);
  const auto at = [&](const char* name) { return place[name].get<double>(); };
  act({move(at("x") + at("w") / 2, at("y") + at("h") / 2), button("pointerDown"), button("pointerUp"),
       button("pointerDown"), button("pointerUp")});
}

std::string Browser::element(const std::string& selector) {
  const json found = call(session_ + "/element", {{"using", "css selector"}, {"value", selector}});
  for (const auto& [key, id] : found.items()) {
    if (id.is_string()) return session_ + "/element/" + id.get<std::string>();
  }
  return session_ + "/element/none";
}

void Browser::click(const std::string& selector) {
  call(element(selector) + "/click", json::object());
}

void Browser::type(const std::string& selector, const std::string& text) {
  const std::string field = element(selector);
  call(field + "/clear", json::object());
  call(field + "/value", {{"text", text}});
}

std::string Browser::answer_dialog(bool yes) {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(120);
  const auto reply = client.Get(session_ + "/alert/text");
  if (!reply || reply->status != 200) {
    ADD_FAILURE() << "there is no dialog: " << (reply ? reply->body : "");
    return "";
  }
  call(session_ + (yes ? "/alert/accept" : "/alert/dismiss"), json::object());
  return json::parse(reply->body)["value"];
}

void Browser::look(int width, int height, bool is_dark, double scale) {
  execute("Emulation.setDeviceMetricsOverride",
          {{"width", width}, {"height", height}, {"deviceScaleFactor", scale}, {"mobile", width < 600}});
  execute("Emulation.setEmulatedMedia",
          {{"features", json::array({{{"name", "prefers-color-scheme"}, {"value", is_dark ? "dark" : "light"}}})}});
}

std::vector<std::string> Browser::errors() {
  std::vector<std::string> errors;
  for (const json& entry : call(session_ + "/se/log", {{"type", "browser"}})) {
    if (entry["level"] == "SEVERE") errors.push_back(entry["message"]);
  }
  return errors;
}

std::string Browser::screenshot() {
  httplib::Client client("127.0.0.1", port_);
  client.set_read_timeout(120);
  const auto reply = client.Get(session_ + "/screenshot");
  if (!reply || reply->status != 200) {
    ADD_FAILURE() << "no screenshot";
    return "";
  }
  return decode_base64(json::parse(reply->body)["value"].get<std::string>());
}

}  // namespace longhaul::testing
