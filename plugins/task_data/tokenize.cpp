#include "plugins/task_data/tokenize.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "gestalt/error.hpp"
#include "plugins/task_data/documents.h"
#include "support/indexed/index_writer.h"

namespace gestalt::task_data {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{4} << 20;

struct Result {
  std::vector<int32_t> ids;
  uint64_t text_bytes = 0;
  std::string bad;  // empty: fine
};

class Workers {
 public:
  Workers(const support::bpe::Tokenizer& tokenizer, const TokenizeOptions& options)
      : tokenizer_(tokenizer), options_(options) {
    for (int64_t w = 0; w < options.num_workers; ++w) scratch_.push_back(tokenizer.make_scratch());
  }

  // Fills `results` in the order of `batch`.
  void run(std::vector<RawDocument>* batch, std::vector<Result>* results) {
    results->assign(batch->size(), {});
    std::atomic<size_t> next{0};
    std::vector<std::exception_ptr> failures(scratch_.size());
    const auto work = [&](size_t w) {
      try {
        for (size_t i = next++; i < batch->size(); i = next++) one(&(*batch)[i], &scratch_[w], &(*results)[i]);
      } catch (...) {
        failures[w] = std::current_exception();
      }
    };
    std::vector<std::thread> threads;
    for (size_t w = 1; w < scratch_.size() && w < batch->size(); ++w) threads.emplace_back(work, w);
    work(0);
    for (std::thread& t : threads) t.join();
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }

 private:
  void one(RawDocument* document, support::bpe::Tokenizer::Scratch* scratch, Result* result) const {
    try {
      const std::string text = text_of(std::move(*document), options_.key);
      result->text_bytes = text.size();
      tokenizer_.encode(text, options_.specials, scratch, &result->ids);
    } catch (const Error& e) {
      if (e.code != GESTALT_DATA_ERROR) throw;
      result->bad = e.message().starts_with("[encode]")
                        ? fmt::format("[{}:{}] {}", *document->path, document->line, e.message())
                        : e.message();
    }
  }

  const support::bpe::Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  std::vector<support::bpe::Tokenizer::Scratch> scratch_;
};

}  // namespace

TokenizeCounts tokenize(const support::bpe::Tokenizer& tokenizer, const TokenizeOptions& options,
                        const std::function<void(const TokenizeProgress&)>& progress) {
  if (options.num_workers < 1 || options.num_workers > 1024)
    throw InvalidArgument(fmt::format("[--workers] got {}, expected 1 to 1024", options.num_workers));
  const int64_t eod = tokenizer.special("eos");
  if (options.append_eod && eod < 0)
    throw InvalidArgument("[tokenize] the tokenizer has no eos to end documents with; give it one or pass --no-eod");
  DocumentReader reader(options);
  support::indexed::IndexWriter writer(options.output, support::indexed::type_for_vocabulary(tokenizer.vocab_size()),
                                       tokenizer.vocab_size());
  Workers workers(tokenizer, options);
  TokenizeCounts counts;
  std::vector<RawDocument> batch;
  std::vector<Result> results;
  using Clock = std::chrono::steady_clock;
  auto reported = Clock::now();
  for (bool more = true; more;) {
    batch.clear();
    for (uint64_t bytes = 0; bytes < kBatchBytes * static_cast<uint64_t>(options.num_workers);) {
      RawDocument document;
      more = reader.next(&document);
      if (!more) break;
      bytes += document.text.size() + 64;
      batch.push_back(std::move(document));
    }
    workers.run(&batch, &results);
    for (Result& r : results) {
      if (!r.bad.empty()) {
        if (options.fail_on_bad) throw Error(GESTALT_DATA_ERROR, r.bad);
        ++counts.bad;
        if (counts.first_bad.size() < 10) counts.first_bad.push_back(r.bad);
        continue;
      }
      if (r.ids.empty()) {
        ++counts.empty;
        continue;
      }
      if (options.append_eod) r.ids.push_back(static_cast<int32_t>(eod));
      writer.add(r.ids);
      writer.end_document();
      ++counts.documents;
      counts.tokens += static_cast<int64_t>(r.ids.size());
      counts.text_bytes += static_cast<int64_t>(r.text_bytes);
    }
    if (progress && Clock::now() - reported > std::chrono::seconds(2)) {
      reported = Clock::now();
      progress({reader.read_bytes(), reader.all_bytes(), &counts});
    }
  }
  if (counts.documents == 0)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[tokenize] no document: {} empty, {} bad{}", counts.empty, counts.bad,
                                                counts.bad ? ", the first " + counts.first_bad[0] : ""));
  writer.finish();
  return counts;
}

}  // namespace gestalt::task_data
