#include "common/placement/expert_range.h"

#include <algorithm>

namespace ganymede::placement {

ExpertRange experts_of_place(int experts, int places, int place) {
  int least = experts / places, more = experts % places;  // the first `more` places have one more
  return {place * least + std::min(place, more), least + (place < more ? 1 : 0)};
}

int place_of_expert(int experts, int places, int expert) {
  int least = experts / places, more = experts % places, in_larger = more * (least + 1);
  return expert < in_larger ? expert / (least + 1) : more + (expert - in_larger) / least;
}

}  // namespace ganymede::placement
