#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhaul {

// A page about a training run that its process serves, with metrics for Prometheus and probes for Kubernetes
// (docs/guide/status_page.md).
struct StatusOptions {
  // Where it listens: "127.0.0.1:8080", "[::1]:8080", "localhost:0", "0.0.0.0:9090"; port 0: any free one, which the
  // log names. Empty: as LONGHAUL_STATUS_ADDRESS says, with LONGHAUL_STATUS_TOKEN_FILE and, separated by commas,
  // LONGHAUL_STATUS_ALLOWED_HOSTS; if that is not set either, there is no page.
  std::string address{};
  // A file with the token that whoever stops the training or requests a checkpoint must give, as a file of mode 0600:
  // `openssl rand -hex 32`. Beyond loopback, whoever reads the page must give it, too. Empty: nobody can do either, and
  // the page is on loopback alone.
  std::string token_file{};
  // Further names by which browsers and scrapers may address the page ("trainer-0.example.org", without a port).
  // Addresses of digits and "localhost" always may; under other names, web sites could reach it in a reader's browser.
  std::vector<std::string> allowed_hosts{};
  int64_t last_step = 0;  // at which training ends, for the time left here and in lines of progress; 0: not known
};

}  // namespace longhaul
