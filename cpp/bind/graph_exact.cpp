#include "graph.hpp"

namespace crfkit {

void bind_graph_exact(nb::module_&) {}

}  // namespace crfkit
