//! Gauss–Legendre quadrature on a finite interval.

/// Positive nodes and weights of the 16-point rule on [−1, 1] (NIST DLMF §3.5(v)).
const NODES: [(f64, f64); 8] = [
    (0.095_012_509_837_637_44, 0.189_450_610_455_068_5),
    (0.281_603_550_779_258_9, 0.182_603_415_044_923_58),
    (0.458_016_777_657_227_4, 0.169_156_519_395_002_54),
    (0.617_876_244_402_643_7, 0.149_595_988_816_576_73),
    (0.755_404_408_355_003, 0.124_628_971_255_533_87),
    (0.865_631_202_387_831_7, 0.095_158_511_682_492_78),
    (0.944_575_023_073_232_6, 0.062_253_523_938_647_89),
    (0.989_400_934_991_649_9, 0.027_152_459_411_754_095),
];

/// The 4-point rule.
const NARROW: [(f64, f64); 2] = [
    (0.339_981_043_584_856_26, 0.652_145_154_862_546_1),
    (0.861_136_311_594_052_6, 0.347_854_845_137_453_85),
];

/// Calls `f(x, weight)` at the points of the 4-point rule on [`from`, `to`].
pub(crate) fn narrow(from: f64, to: f64, f: impl FnMut(f64, f64)) {
    visit(&NARROW, from, to, f);
}

/// Calls `f(x, weight)` at the points of the 16-point rule on [`from`, `to`].
pub(crate) fn wide(from: f64, to: f64, f: impl FnMut(f64, f64)) {
    visit(&NODES, from, to, f);
}

fn visit(rule: &[(f64, f64)], from: f64, to: f64, mut f: impl FnMut(f64, f64)) {
    let (mid, half) = (0.5 * (from + to), 0.5 * (to - from));
    for (node, weight) in rule {
        f(mid - half * node, half * weight);
        f(mid + half * node, half * weight);
    }
}

/// ∫ f over [`from`, `to`], exact for polynomials of degree 31.
pub(crate) fn integrate(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    let mut sum = 0.0;
    wide(from, to, |x, weight| sum += weight * f(x));
    sum
}

#[cfg(test)]
mod tests {
    use super::integrate;

    #[test]
    fn a_polynomial_of_degree_31_is_integrated_exactly() {
        // Oracle: the antiderivative.
        let exact = 2f64.powi(32) / 32.0;
        let got = integrate(0.0, 2.0, |x| x.powi(31));
        assert!((got / exact - 1.0).abs() < 1e-14, "{got} against {exact}");
    }
}
