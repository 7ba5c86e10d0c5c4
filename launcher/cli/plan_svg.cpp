#include "launcher/cli/plan_svg.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "common/base/text.h"

namespace ganymede::cli {
namespace {

constexpr double left = 90, right = 20, width = 1600;  // pixels
constexpr double lanes_top = 96, lane_height = 46, bar_height = 34;

constexpr std::array<const char*, plan::operation_kinds> colours = {
    "#9aa0a6", "#4e79a7", "#bab0ac", "#59a14f", "#b07aa1", "#d4a6c8", "#f1ce63", "#e15759",
    "#f28e2b", "#ffbe7d", "#8cd17d", "#499894", "#79706e", "#d37295", "#86bcb6"};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return out;
}

/// A round distance of ticks so that about ten fit.
double tick_ms(double length) {
  double unit = std::pow(10.0, std::floor(std::log10(length / 10)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (length / (unit * factor) <= 12) return unit * factor;
  }
  return unit * 10;
}

class Drawing {
 public:
  explicit Drawing(const PlanReport& report) : report_(report), length_(std::max(report.plan_ms, 1e-6)) {
    for (const plan::Operation& o : report.plan.operations) used_[static_cast<std::size_t>(o.lane)] = true;
    for (int lane = 0; lane < plan::lane_count; ++lane) {
      if (used_[lane]) row_[lane] = rows_++;
    }
    bottom_ = lanes_top + rows_ * lane_height;
  }

  std::string text() {
    head();
    exposed();
    ticks();
    lanes();
    for (std::size_t i = 0; i < report_.spans.size(); ++i) bar(static_cast<int>(i));
    return out_ + "</svg>\n";
  }

 private:
  double x(double ms) const { return left + ms / length_ * (width - left - right); }
  void head();
  void exposed();
  void ticks();
  void lanes();
  void bar(int index);
  std::string tooltip(int index) const;

  const PlanReport& report_;
  double length_, bottom_ = 0;
  std::array<bool, plan::lane_count> used_{};
  std::array<int, plan::lane_count> row_{};
  int rows_ = 0;
  std::string out_;
};

void Drawing::head() {
  out_ += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width, bottom_ + 40);
  out_ += fmt::format(
      "<text x=\"{}\" y=\"24\" font-size=\"16\">{}</text>\n", left,
      escaped(fmt::format("{}, rank {} of {}: plan {}, exposed communication {} ({})", report_.config.run.name,
                          report_.placement.rank, report_.placement.world, human_seconds(report_.plan_ms / 1e3),
                          human_seconds(plan::sum_ms(report_.exposed) / 1e3), report_.durations)));
  std::array<bool, plan::operation_kinds> seen{};
  for (const plan::Operation& o : report_.plan.operations) seen[static_cast<std::size_t>(o.kind)] = true;
  double at = left;
  auto entry = [&](const char* colour, const std::string& name) {
    out_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"40\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.1f}\" y=\"51\">{}</text>\n",
        at, colour, at + 16, name);
    at += 30 + 6.6 * static_cast<double>(name.size());
  };
  for (std::size_t kind = 0; kind < seen.size(); ++kind) {
    if (seen[kind]) entry(colours[kind], plan::name(static_cast<plan::OperationKind>(kind)));
  }
  entry("#fbdcdc", "exposed communication");
}

void Drawing::exposed() {
  for (const plan::Interval& interval : report_.exposed) {
    out_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#fbdcdc\"><title>exposed communication: "
        "{:.3f} "
        "ms</title></rect>\n",
        x(interval.from_ms), lanes_top - 8, x(interval.to_ms) - x(interval.from_ms), bottom_ - lanes_top + 8,
        interval.to_ms - interval.from_ms);
  }
}

void Drawing::ticks() {
  double step = tick_ms(length_);
  for (int i = 0; i * step <= length_; ++i) {
    double at = x(i * step);
    out_ += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#dddddd\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4:g} ms</text>\n",
        at, lanes_top - 8, bottom_, bottom_ + 18, i * step);
  }
}

void Drawing::lanes() {
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    if (!used_[lane]) continue;
    double y = lanes_top + row_[lane] * lane_height;
    out_ += fmt::format(
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text><line x1=\"{}\" y1=\"{:.1f}\" x2=\"{}\" "
        "y2=\"{:.1f}\" "
        "stroke=\"#eeeeee\"/>\n",
        left - 8, y + bar_height / 2 + 4, plan::name(static_cast<plan::Lane>(lane)), left, y + bar_height + 6,
        width - right, y + bar_height + 6);
  }
}

std::string Drawing::tooltip(int index) const {
  const plan::Operation& o = report_.plan.operations[index];
  const plan::Span& span = report_.spans[index];
  std::string text = fmt::format("{}: {} {}\n{:.3f} ms from {:.3f} ms", index, plan::name(o.kind), subject(report_, o),
                                 span.end_ms - span.start_ms, span.start_ms);
  if (o.bytes > 0) text += fmt::format("\n{} {}", human_bytes(static_cast<double>(o.bytes)), o.wire);
  if (report_.moved[index].between > 0) {
    text += fmt::format("\n{} to other nodes", human_bytes(static_cast<double>(report_.moved[index].between)));
  }
  for (int b : o.takes) text += "\ntakes " + report_.plan.buffers[b].name;
  for (int b : o.frees) text += "\nfrees " + report_.plan.buffers[b].name;
  return text;
}

void Drawing::bar(int index) {
  const plan::Operation& o = report_.plan.operations[index];
  const plan::Span& span = report_.spans[index];
  if (span.end_ms <= span.start_ms) return;
  double from = x(span.start_ms), wide = std::max(0.4, x(span.end_ms) - from);
  double y = lanes_top + row_[static_cast<std::size_t>(o.lane)] * lane_height;
  out_ += fmt::format(
      "<g><title>{}</title><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"white\" "
      "stroke-width=\"0.3\"/>",
      escaped(tooltip(index)), from, y, wide, bar_height, colours[static_cast<std::size_t>(o.kind)]);
  std::string label = subject(report_, o);
  if (wide > 7.0 * static_cast<double>(label.size())) {
    out_ += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" fill=\"white\">{}</text>", from + 3, y + bar_height / 2 + 4,
                        escaped(label));
  }
  out_ += "</g>\n";
}

}  // namespace

std::string plan_svg(const PlanReport& report) { return Drawing(report).text(); }

}  // namespace ganymede::cli
