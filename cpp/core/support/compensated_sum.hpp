// A sum whose error does not grow with the number of its terms (Neumaier 1974).
#pragma once

#include <cmath>

namespace crfkit {

class CompensatedSum {
public:
    void operator+=(double term) {
        const double sum = sum_ + term;
        lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - sum) + term : (term - sum) + sum_;
        sum_ = sum;
    }
    double value() const { return sum_ + lost_; }

private:
    double sum_ = 0.0, lost_ = 0.0;
};

}  // namespace crfkit
