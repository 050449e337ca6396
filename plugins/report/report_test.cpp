#include "gestalt/error.hpp"
#include "plugins/report/chart.h"
#include "plugins/report/diff.h"
#include "plugins/report/page.h"
#include "support/test_folder.h"
#include "tests/catch_compat.hpp"

namespace gestalt::report {

namespace {

using support::contains;
using support::error_of;

constexpr const char* kRun =
    "{\"step\":0,\"text\":\"config\",\"content\":\"run.name = \\\"first\\\"\\noptimizer.lr = 0.1\\n\"}\n"
    "{\"step\":0,\"text\":\"plugins\",\"content\":\"gestalt.adam 0.1.0\\n\"}\n"
    "{\"step\":1,\"loss\":3.5,\"lr\":0.1}\n{\"step\":2,\"loss\":\"NaN\",\"lr\":0.1}\n"
    "{\"step\":3,\"loss\":2.5,\"lr\":0.05}\n{\"step\":3,\"valid_loss\":2.75}\n"
    "{\"step\":3,\"text\":\"sample\",\"content\":\"a <b> & c\"}\n";

}  // namespace

TEST_CASE("a run is read with its curves, texts and samples; a torn last line is left out") {
  const support::TestFolder folder;
  folder.write("metrics.jsonl", std::string(kRun) + "{\"step\":4,\"lo");
  const RunData run = read_run(folder.file(""));
  CHECK(run.name == "first");
  CHECK(run.of("loss").size() == 3);
  CHECK(run.of("valid_loss").at(0).value == 2.75);
  CHECK(run.setting("optimizer.lr") == "0.1");
  CHECK(run.samples.at(0).text == "a <b> & c");
  CHECK(contains(error_of([&] { read_run(folder.file("none")); }), "there is no metrics.jsonl"));
  folder.write("metrics.jsonl", "{\"step\":1}\nhello\n");
  CHECK(contains(error_of([&] { read_run(folder.file("")); }), "metrics.jsonl:2"));
}

TEST_CASE("the page holds curves and texts, takes nothing from elsewhere and runs no script") {
  const support::TestFolder folder;
  folder.write("metrics.jsonl", kRun);
  const std::string page = page_of(read_run(folder.file("")));
  for (const char* part : {"<svg", "Learning rate", "a &lt;b&gt; &amp; c", "optimizer.lr = 0.1", "gestalt.adam", "2.7500"})
    CHECK(contains(page, part));
  for (const char* part : {"<script", "src=", "href=", "@import", "url("}) CHECK(!contains(page, part));
}

TEST_CASE("the picture of the loss stands alone") {
  const support::TestFolder folder;
  folder.write("metrics.jsonl", kRun);
  const std::string svg = loss_picture(read_run(folder.file("")));
  CHECK(svg.starts_with("<svg "));
  CHECK(contains(svg, "<style>"));
  CHECK(svg.find("</svg>") != std::string::npos);
}

TEST_CASE("a chart leaves out what is not finite and is empty without any point") {
  CHECK(svg_of({"t", "", {{"l", {}, "red"}}}).empty());
  const std::string one = svg_of({"t", "", {{"l", {{1, 2.0}}, "red"}}});
  CHECK(contains(one, "circle"));
  CHECK(!contains(svg_of({"t", "", {{"l", {{1, 2.0}, {2, 1.0 / 0.0}, {3, 1.0}}, "red"}}}), "inf"));
  Series many;
  for (int64_t i = 0; i < 100000; ++i) many.push_back({i, static_cast<double>(i)});
  CHECK(svg_of({"t", "", {{"l", many, "red"}}}).size() < 30000);
}

TEST_CASE("two runs differ in settings, and from the step at which their losses do") {
  const support::TestFolder one, other;
  one.write("metrics.jsonl", kRun);
  std::string changed = kRun;
  changed.replace(changed.find("optimizer.lr = 0.1"), 18, "optimizer.lr = 0.2");
  changed.replace(changed.find("2.5"), 3, "2.4");
  other.write("metrics.jsonl", changed);
  const RunData a = read_run(one.file("")), b = read_run(other.file(""));
  const Difference d = difference_of(a, b);
  REQUIRE(d.settings.size() == 1);
  CHECK((d.settings[0].name == "optimizer.lr" && d.settings[0].a == "0.1" && d.settings[0].b == "0.2"));
  CHECK(d.common_steps == 3);
  CHECK(contains(text_of(d, a, b), "plugins: equal"));
  CHECK(difference_of(a, a).settings.empty());
}

}  // namespace gestalt::report
