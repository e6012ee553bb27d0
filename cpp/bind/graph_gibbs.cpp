#include "graph.hpp"

namespace crfkit {

void bind_graph_gibbs(nb::module_&) {}

}  // namespace crfkit
