#include "launcher/cli/plan_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/base/text.h"

namespace ganymede::cli {
namespace {

constexpr double left = 110, right = 20;  // pixels
constexpr double legend_top = 40, legend_row = 18, lane_height = 46, bar_height = 34;
constexpr double letter = 6.6, small_letter = 5.6;                              // width of one at 12 and at 10 pixels
constexpr double least_width = 1600, most_width = 20000, operation_width = 30;  // of the drawing; of one in its lane

/// What runs in each lane, in the order of plan::Lane.
constexpr std::array<const char*, plan::lane_count> lane_meanings = {"the model, row by row",
                                                                     "parameters from other ranks",
                                                                     "gradients to the ranks that own them",
                                                                     "saved activations to host memory",
                                                                     "saved activations back",
                                                                     "waits, the vote, gradients to their segment",
                                                                     "tokens to experts of other ranks and back"};

constexpr std::array<const char*, plan::operation_kinds> colours = {
    "#9aa0a6", "#4e79a7", "#6b9bd1", "#a0cbe8", "#bab0ac", "#59a14f", "#76b7b2", "#9cd3cf",
    "#b07aa1", "#d4a6c8", "#f1ce63", "#e15759", "#f28e2b", "#ffd8a8", "#ffbe7d", "#8cd17d",
    "#499894", "#79706e", "#d37295", "#86bcb6", "#b6992d", "#e9a3c9", "#d7b5a6"};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  }
  return out;
}

/// Whether black letters are read better on it than white ones. "#rrggbb".
bool is_light(const std::string& colour) {
  auto part = [&](std::size_t at) { return std::stoi(colour.substr(at, 2), nullptr, 16); };
  return 0.299 * part(1) + 0.587 * part(3) + 0.114 * part(5) > 150;
}

double text_width(const std::string& text) { return letter * static_cast<double>(text.size()); }

/// The unit of the axis, so that its numbers are short.
struct TimeUnit {
  const char* name;
  double ms;
};

TimeUnit unit_of(double length_ms) {
  if (length_ms >= 10'000) return {"s", 1000};
  return length_ms < 1 ? TimeUnit{"µs", 1e-3} : TimeUnit{"ms", 1};
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
  explicit Drawing(const PlanReport& report) : report_(report), length_(std::max(report.step_ms, 1e-6)) {
    std::array<int, plan::lane_count> operations{};
    for (const plan::Operation& o : report.plan.operations) ++operations[static_cast<std::size_t>(o.lane)];
    for (int lane = 0; lane < plan::lane_count; ++lane) used_[lane] = operations[lane] > 0;
    double wanted = operation_width * *std::max_element(operations.begin(), operations.end());
    width_ = std::clamp(wanted, least_width, most_width);
    for (int lane = 0; lane < plan::lane_count; ++lane) {
      if (used_[lane]) row_[lane] = rows_++;
    }
  }

  std::string text() {
    legend();
    bottom_ = top_ + rows_ * lane_height;
    head();
    exposed();
    ticks();
    lanes();
    for (std::size_t i = 0; i < report_.spans.size(); ++i) bar(static_cast<int>(i));
    return out_ + "</svg>\n";
  }

 private:
  double x(double ms) const { return left + ms / length_ * (width_ - left - right); }
  void head();
  void legend();
  void exposed();
  void ticks();
  void lanes();
  void bar(int index);
  std::string tooltip(int index) const;
  std::string label(int index, double from, double wide, double y) const;

  const PlanReport& report_;
  double length_, width_ = least_width, top_ = 0, bottom_ = 0;  // of the lanes
  std::string legend_;
  std::array<bool, plan::lane_count> used_{};
  std::array<int, plan::lane_count> row_{};
  int rows_ = 0;
  std::string out_;
};

void Drawing::head() {
  out_ += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      width_, bottom_ + 52);
  out_ += fmt::format(
      "<text x=\"{}\" y=\"24\" font-size=\"16\">{}</text>\n", left,
      escaped(fmt::format("{}, rank {} of {}: step {}, exposed communication {} ({})", report_.config.run.name,
                          report_.placement.rank, report_.placement.world, human_seconds(report_.step_ms / 1e3),
                          human_seconds(plan::sum_ms(report_.exposed) / 1e3), report_.durations)));
  out_ += legend_;
}

/// Colours by kind, then what the lanes are; rows are broken where the drawing ends.
void Drawing::legend() {
  std::array<bool, plan::operation_kinds> seen{};
  for (const plan::Operation& o : report_.plan.operations) seen[static_cast<std::size_t>(o.kind)] = true;
  double at = left, y = legend_top;
  auto place = [&](double wide) {
    if (at + wide > width_ - right && at > left) {
      at = left;
      y += legend_row;
    }
    double here = at;
    at += wide;
    return here;
  };
  auto entry = [&](const char* colour, const std::string& name) {
    double here = place(30 + text_width(name));
    legend_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.1f}\" "
        "y=\"{}\">{}</text>\n",
        here, y, colour, here + 16, y + 11, name);
  };
  for (std::size_t kind = 0; kind < seen.size(); ++kind) {
    if (seen[kind]) entry(colours[kind], plan::name(static_cast<plan::OperationKind>(kind)));
  }
  entry("#fbdcdc", "exposed communication");
  at = width_;  // a new row
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    if (!used_[lane]) continue;
    std::string text = fmt::format("lane {}: {}", plan::name(static_cast<plan::Lane>(lane)), lane_meanings[lane]);
    double here = place(text_width(text) + 14);
    legend_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" fill=\"#555555\">{}</text>\n", here, y + 11, text);
  }
  top_ = y + 2 * legend_row;
}

void Drawing::exposed() {
  for (const plan::Interval& interval : report_.exposed) {
    out_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#fbdcdc\"><title>exposed communication: "
        "{:.3f} "
        "ms</title></rect>\n",
        x(interval.from_ms), top_ - 8, x(interval.to_ms) - x(interval.from_ms), bottom_ - top_ + 8,
        interval.to_ms - interval.from_ms);
  }
}

void Drawing::ticks() {
  double step = tick_ms(length_);
  TimeUnit unit = unit_of(length_);
  for (int i = 0; i * step <= length_; ++i) {
    double at = x(i * step);
    out_ += fmt::format(
        "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\" stroke=\"#dddddd\"/><text x=\"{0:.1f}\" y=\"{3}\" "
        "text-anchor=\"middle\">{4:g} {5}</text>\n",
        at, top_ - 8, bottom_, bottom_ + 18, i * step / unit.ms, unit.name);
  }
  out_ +=
      fmt::format("<text x=\"{}\" y=\"{}\" fill=\"#555555\">time since the step began</text>\n", left, bottom_ + 38);
}

void Drawing::lanes() {
  for (int lane = 0; lane < plan::lane_count; ++lane) {
    if (!used_[lane]) continue;
    double y = top_ + row_[lane] * lane_height;
    out_ += fmt::format(
        "<text x=\"{0}\" y=\"{1:.1f}\" text-anchor=\"end\">{2}</text><text x=\"{0}\" y=\"{3:.1f}\" text-anchor=\"end\" "
        "font-size=\"10\" fill=\"#555555\">busy {4:.0f}%</text><line x1=\"{5}\" y1=\"{6:.1f}\" x2=\"{7}\" "
        "y2=\"{6:.1f}\" "
        "stroke=\"#eeeeee\"/>\n",
        left - 8, y + bar_height / 2, plan::name(static_cast<plan::Lane>(lane)), y + bar_height / 2 + 13,
        100 * report_.lanes[lane].busy_ms / length_, left, y + bar_height + 6, width_ - right);
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

/// What fits of two lines in a bar: kind and bytes, then what it is of.
std::string Drawing::label(int index, double from, double wide, double y) const {
  const plan::Operation& o = report_.plan.operations[index];
  std::string kind = plan::name(o.kind);
  std::string size = o.bytes > 0 ? " " + human_bytes(static_cast<double>(o.bytes)) : "";
  auto fits = [&](const std::string& text) {
    return !text.empty() && small_letter * static_cast<double>(text.size()) + 4 <= wide;
  };
  std::string first = fits(kind + size) ? kind + size : fits(kind) ? kind : "";
  std::string second = fits(subject(report_, o)) ? subject(report_, o) : "";
  const char* colour = is_light(colours[static_cast<std::size_t>(o.kind)]) ? "black" : "white";
  std::string out;
  auto line = [&](const std::string& text, double down) {
    if (text.empty()) return;
    out += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" font-size=\"10\" fill=\"{}\">{}</text>", from + 2, y + down,
                       colour, escaped(text));
  };
  line(first, 14);
  line(second, 27);
  return out;
}

void Drawing::bar(int index) {
  const plan::Operation& o = report_.plan.operations[index];
  const plan::Span& span = report_.spans[index];
  if (span.end_ms <= span.start_ms) return;
  double from = x(span.start_ms), wide = std::max(0.4, x(span.end_ms) - from);
  double y = top_ + row_[static_cast<std::size_t>(o.lane)] * lane_height;
  out_ += fmt::format(
      "<g><title>{}</title><rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" stroke=\"white\" "
      "stroke-width=\"0.3\"/>",
      escaped(tooltip(index)), from, y, wide, bar_height, colours[static_cast<std::size_t>(o.kind)]);
  out_ += label(index, from, wide, y);
  out_ += "</g>\n";
}

}  // namespace

std::string plan_svg(const PlanReport& report) { return Drawing(report).text(); }

}  // namespace ganymede::cli
