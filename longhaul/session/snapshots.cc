#include "longhaul/session/snapshots.h"

namespace longhaul {
namespace {

class PlainSnapshots : public Snapshots {
 public:
  std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) override {
    return session.run(fetches, {}, {.snapshot = true});
  }
  void prepare(const std::function<bool()>&) override {}
  uint64_t bytes_free() const override { return 0; }
};

}  // namespace

std::shared_ptr<Snapshots> snapshots_of(Session& session) {
  SnapshotKeeping* const keeping = session.capabilities().snapshot_keeping;
  return keeping != nullptr ? keeping->snapshots() : plain_snapshots();
}

std::shared_ptr<Snapshots> plain_snapshots() {
  return std::make_shared<PlainSnapshots>();
}

}  // namespace longhaul
