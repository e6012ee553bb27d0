#include "graph.hpp"

namespace crfkit {

void bind_graph_pseudo(nb::module_&) {}

}  // namespace crfkit
