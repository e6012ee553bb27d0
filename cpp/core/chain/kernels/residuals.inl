// Residuals of states into the gradient, and the score of given labels. Part of inference.hpp.

// Adds a row of states (zero in the padding) to the gradient of what scores at t.
template <class Width>
void add_states(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t t, bool,
                const Lattice<LabelStates<Width>>& a, const Real* row) {
    add_residual(data, w, g, a.shape.width, t, row);
}

// In inference.cpp.
void add_states(const ChainPlan& data, const Weights& w, const Gradient& g, int64_t t, bool start,
                const Lattice<LabelPairStates>& a, const Real* row);

// Score of the labels in the filled lattice.
template <class Shape>
CRFKIT_INLINE double score_of(const Weights& w, const Lattice<Shape>& a, const int32_t* y) {
    const auto span = a.shape.span();
    double score = 0.0;
    for (int64_t t = 0; t < a.length; ++t) {
        score += a.u[t * span + a.shape.state(y, t)];
        if (t > 0) score += jumps_to(w, a, t)[a.shape.state(y, t - 1) * a.shape.width + y[t]];
    }
    return score;
}
