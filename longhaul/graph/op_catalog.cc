#include "longhaul/graph/op_catalog.h"

#include <algorithm>

#include "longhaul/base/mutex.h"

namespace longhaul {
namespace {

struct InstalledCatalogs {
  Mutex mutex;
  std::vector<const OpCatalog*> catalogs GUARDED_BY(mutex);
};

InstalledCatalogs& installed() {
  static InstalledCatalogs* instance = new InstalledCatalogs;
  return *instance;
}

}  // namespace

void install_op_catalog(const OpCatalog* catalog) {
  MutexLock lock(installed().mutex);
  auto& catalogs = installed().catalogs;
  if (std::find(catalogs.begin(), catalogs.end(), catalog) == catalogs.end()) catalogs.push_back(catalog);
}

OpInfo resolve_operation(const OperationSpec& spec) {
  if (auto info = builtin_op_catalog().resolve(spec)) return *std::move(info);
  std::vector<const OpCatalog*> catalogs;
  {
    MutexLock lock(installed().mutex);
    catalogs = installed().catalogs;
  }
  for (const OpCatalog* catalog : catalogs) {
    if (auto info = catalog->resolve(spec)) return *std::move(info);
  }
  throw NotFoundError("unknown operation type '" + spec.type + "' (for " + spec.name + ")" +
                      hint_of_missing_catalogs());
}

std::string hint_of_missing_catalogs() {
  MutexLock lock(installed().mutex);
  return installed().catalogs.empty() ? "; libtorch's operators come with #include <longhaul/longhaul.h>" : "";
}

}  // namespace longhaul
