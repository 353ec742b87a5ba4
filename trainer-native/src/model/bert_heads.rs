//! What BERT predicts from its encoder's output: masked tokens, and how two sentences belong together.

use super::ParamList;
use super::bert::{linear, norm};
use crate::nn::GradRecord;
use crate::nn::{Activation, Initial, Kernels, LayerNorm, Linear, LmHead, ParamId, SavedNorm, Weights};
use crate::tensor::{IndexingUpdateOp, Int, Tensor};

/// Tokens at masked places: a transformation, then products with the token table, and a bias a token.
#[derive(Clone, Copy, Debug)]
pub(super) struct MaskedHead {
    transform: Linear,
    norm: LayerNorm,
    table: LmHead,
    /// `[vocabulary]`
    bias: ParamId,
}

/// What [`MaskedHead::backward`] needs.
pub(super) struct SavedMasked<B: Kernels> {
    /// Rows of the flat encoder output. `[batch·targets]`
    places: Tensor<B, 1, Int>,
    /// `[batch, targets, d]`
    gathered: Tensor<B, 3>,
    transformed: Tensor<B, 3>,
    norm: SavedNorm<B>,
    hidden: Tensor<B, 3>,
    seq: usize,
}

/// The two factors of each example's gradient of the token table at the head.
pub(super) struct TableGrad<B: Kernels> {
    /// `[batch, targets, d]`
    pub hidden: Tensor<B, 3>,
    /// `[batch, targets, vocabulary]`
    pub logits_grad: Tensor<B, 3>,
}

impl MaskedHead {
    pub fn new(list: &mut ParamList, table: ParamId, vocabulary: usize, d: usize) -> Self {
        let bias = list.add("cls.predictions.bias", &[vocabulary], Initial::Constant(0.0));
        let transform = linear(list, "cls.predictions.transform.dense", d, d);
        let norm = norm(list, "cls.predictions.transform.LayerNorm", d);
        Self { transform, norm, table: LmHead { table }, bias }
    }

    /// Logits at the given places of each example, or at all.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, positions: `[batch, targets]`
    /// - output: `[batch·targets, vocabulary]`
    pub fn forward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        hidden: &Tensor<B, 3>,
        positions: Option<Tensor<B, 2, Int>>,
    ) -> (Tensor<B, 2>, SavedMasked<B>) {
        let [batch, seq, d] = hidden.dims();
        let device = hidden.device();
        let positions = positions.unwrap_or_else(|| {
            Tensor::<B, 1, Int>::arange(0..seq as i64, &device).reshape([1, seq]).expand([batch, seq])
        });
        let targets = positions.dims()[1];
        let first = Tensor::<B, 1, Int>::arange(0..batch as i64, &device).mul_scalar(seq as i64);
        let first = first.reshape([batch, 1]).expand([batch, targets]);
        let places = (positions + first).reshape([batch * targets]);
        let flat = hidden.clone().reshape([batch * seq, d]);
        let gathered = flat.select(0, places.clone()).reshape([batch, targets, d]);
        let transformed = self.transform.forward(weights, gathered.clone());
        let activated = Activation::Gelu.forward(transformed.clone());
        let (hidden, norm) = self.norm.forward(weights, activated);
        let logits = self.table.forward(weights, hidden.clone()) + weights.vector(self.bias).unsqueeze::<2>();
        (logits, SavedMasked { places, gathered, transformed, norm, hidden, seq })
    }

    /// Gradient of the encoder's output, and what the token table's record needs of the head; leaves the records of
    /// the head's own parameters.
    ///
    /// # Shapes
    /// - logits: `[batch·targets, vocabulary]`, targets, target_weights: `[batch, targets]`
    /// - output: `[batch, seq, d]`
    pub fn backward<B: Kernels>(
        &self,
        weights: &Weights<B>,
        saved: SavedMasked<B>,
        logits: Tensor<B, 2>,
        targets: Tensor<B, 2, Int>,
        target_weights: Tensor<B, 2>,
        records: &mut Vec<GradRecord<B>>,
    ) -> (Tensor<B, 3>, TableGrad<B>) {
        let loss = self.table.backward(weights, logits, targets, target_weights);
        let of_bias = B::sum_positions(loss.logits_grad.clone());
        records.push(GradRecord::Explicit { param: self.bias, grads: of_bias });
        let grad = self.norm.backward(weights, saved.norm, loss.hidden_grad, records);
        let grad = Activation::Gelu.backward(saved.transformed, grad);
        let grad = self.transform.backward(weights, saved.gathered, grad, records);
        let [batch, targets, d] = grad.dims();
        let zeros = Tensor::zeros([batch * saved.seq, d], (&grad.device(), grad.dtype()));
        let rows = grad.reshape([batch * targets, d]);
        let scattered = zeros.select_assign(0, saved.places, rows, IndexingUpdateOp::Add);
        let table = TableGrad { hidden: saved.hidden, logits_grad: loss.logits_grad };
        (scattered.reshape([batch, saved.seq, d]), table)
    }
}

/// Whether the second sentence follows the first, from the first place.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentenceHead {
    pooler: Linear,
    classes: Linear,
}

impl SentenceHead {
    pub fn new(list: &mut ParamList, d: usize) -> Self {
        let pooler = linear(list, "bert.pooler.dense", d, d);
        Self { pooler, classes: linear(list, "cls.seq_relationship", 2, d) }
    }

    /// The two classes' logits.
    ///
    /// # Shapes
    /// - hidden: `[batch, seq, d]`, output: `[batch, 2]`
    pub fn logits<B: Kernels>(&self, weights: &Weights<B>, hidden: &Tensor<B, 3>) -> Tensor<B, 2> {
        let pooled = self.pooler.forward(weights, hidden.clone().narrow(1, 0, 1)).tanh();
        self.classes.forward(weights, pooled).reshape([hidden.dims()[0], 2])
    }

    /// Forward and backward at once: the gradient of the encoder's output, and the head's records.
    ///
    /// # Shapes
    /// - hidden, output: `[batch, seq, d]`, labels: classes and weights, `[batch]` each
    pub fn gradient<B: Kernels>(
        &self,
        weights: &Weights<B>,
        hidden: &Tensor<B, 3>,
        labels: (Tensor<B, 1, Int>, Tensor<B, 1>),
        records: &mut Vec<GradRecord<B>>,
    ) -> Tensor<B, 3> {
        let [batch, seq, d] = hidden.dims();
        let first = hidden.clone().narrow(1, 0, 1);
        let pooled = self.pooler.forward(weights, first.clone()).tanh();
        let logits = self.classes.forward(weights, pooled.clone()).reshape([batch, 2]);
        let grad = B::cross_entropy_backward(logits, labels.0, labels.1).reshape([batch, 1, 2]);
        let grad = self.classes.backward(weights, pooled.clone(), grad, records);
        let grad = grad * (pooled.square().neg() + 1.0);
        let grad = self.pooler.backward(weights, first, grad, records);
        if seq == 1 {
            return grad;
        }
        let rest = Tensor::zeros([batch, seq - 1, d], (&grad.device(), grad.dtype()));
        Tensor::cat(vec![grad, rest], 1)
    }
}
