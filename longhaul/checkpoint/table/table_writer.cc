#include "longhaul/checkpoint/table/table_writer.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <exception>

#include "longhaul/checkpoint/table/table_format.h"

namespace longhaul {
namespace {

// Our file as LevelDB sees one. LevelDB is built without exceptions, so an error waits here until the call is back.
class FileForLevelDb : public leveldb::WritableFile {
 public:
  explicit FileForLevelDb(longhaul::WritableFile& file) : file_(file) {}
  leveldb::Status Append(const leveldb::Slice& data) override {
    return kept([&] { file_.append({data.data(), data.size()}); });
  }
  leveldb::Status Flush() override { return {}; }
  leveldb::Status Sync() override { return {}; }
  leveldb::Status Close() override { return {}; }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <typename Call>
  leveldb::Status kept(Call call) {
    try {
      call();
      return {};
    } catch (...) {
      error_ = std::current_exception();
      return leveldb::Status::IOError("append");
    }
  }

  longhaul::WritableFile& file_;
  std::exception_ptr error_;
};

leveldb::Options table_options() {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = table_format::kBlockSize;
  options.block_restart_interval = table_format::kRestartInterval;
  return options;
}

}  // namespace

class TableWriter::Impl {
 public:
  explicit Impl(WritableFile& file) : file_(file), builder_(table_options(), &file_) {}
  ~Impl() {
    if (!finished_) builder_.Abandon();
  }

  void add(std::string_view key, std::string_view value) {
    if (builder_.NumEntries() > 0 && key <= last_key_) throw InternalError("a table's keys must be added in order");
    last_key_ = key;
    builder_.Add({key.data(), key.size()}, {value.data(), value.size()});
    check(builder_.status());
  }

  void finish() {
    finished_ = true;
    check(builder_.Finish());
  }

 private:
  void check(const leveldb::Status& status) {
    file_.rethrow();
    if (!status.ok()) throw InternalError("table: " + status.ToString());
  }

  FileForLevelDb file_;
  leveldb::TableBuilder builder_;
  std::string last_key_;
  bool finished_ = false;
};

TableWriter::TableWriter(WritableFile& file) : impl_(std::make_unique<Impl>(file)) {}
TableWriter::~TableWriter() = default;
void TableWriter::add(std::string_view key, std::string_view value) {
  impl_->add(key, value);
}
void TableWriter::finish() {
  impl_->finish();
}

}  // namespace longhaul
