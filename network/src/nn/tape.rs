//! A pass of a model over a batch, and the tape that its backward pass reads.
//!
//! A model has a forward pass only. It takes a [`ForwardPass`] and applies operators to values ([`Var`]).
//! In training, an operator notes on the tape how to turn the gradient of its output into the
//! gradients of its inputs and the records of its parameters. [`ForwardPass::backward`] runs these notes
//! in reverse.
//!
//! An operator notes nothing, and saves nothing, if neither its parameters nor anything before it is trained.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dropout::Dropout;
use super::table_grads::{HeadGrad, TableGrads};
use super::{Cache, GradRecord, Kernels, ParamId, Weights};
use crate::tensor::{Int, Tensor};

/// A value of a pass.
///
/// # Shapes
/// `[batch, seq, d]`, unless the operator that made it says otherwise.
#[derive(Clone, Debug)]
pub struct Var<B: Kernels> {
    pub(super) value: Tensor<B, 3>,
    pub(super) slot: Option<Slot>,
}

/// The place at which the gradient of a value is summed. A value that no trained parameter can
/// change has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

impl Slot {
    /// The slot of values inside a block that is computed twice, in the first computation.
    const UNUSED: Self = Self(usize::MAX);
}

impl<B: Kernels> Var<B> {
    /// Creates a value without a gradient.
    pub fn constant(value: Tensor<B, 3>) -> Self {
        Self { value, slot: None }
    }

    /// Returns the value itself.
    pub fn into_value(self) -> Tensor<B, 3> {
        self.value
    }

    /// Returns the sizes of the axes.
    pub fn dims(&self) -> [usize; 3] {
        self.value.dims()
    }
}

/// A pass of a model over a batch: for training, for measuring or for generating.
pub struct ForwardPass<'a, B: Kernels> {
    weights: &'a Weights<B>,
    mode: Mode<'a, B>,
    nodes: Vec<Node<'a, B>>,
    slots: usize,
    /// Number of operators that use each trained table.
    uses: BTreeMap<ParamId, usize>,
    /// Dropout of a training pass, if it has any.
    pub(super) dropout: Option<Dropout>,
    /// Gradients that the backward pass starts from.
    seeds: Vec<(Slot, Tensor<B, 3>)>,
}

enum Mode<'a, B: Kernels> {
    Measure,
    Generate(&'a mut Cache<B>),
    Train {
        recompute: bool,
    },
    /// The first of the two forward passes of a block that is computed twice. It only determines
    /// which values need a gradient.
    Skim,
}

type Step<'a, B> = Box<dyn FnOnce(Tensor<B, 3>, &mut Backward<'_, B>) + 'a>;

enum Node<'a, B: Kernels> {
    Operator {
        output: Slot,
        backward: Step<'a, B>,
    },
    /// The records of operators noted after this are complete once the backward pass arrives here.
    BlockStart,
    /// The record of this table is not left before the backward pass arrives here.
    Table(ParamId),
}

impl<'a, B: Kernels> ForwardPass<'a, B> {
    fn new(weights: &'a Weights<B>, mode: Mode<'a, B>) -> Self {
        let (nodes, uses, seeds) = (Vec::new(), BTreeMap::new(), Vec::new());
        Self { weights, mode, nodes, slots: 0, uses, dropout: None, seeds }
    }

    /// Creates a pass that notes what the backward pass needs. With `recompute`, blocks keep only
    /// their inputs and are recomputed when the backward pass needs them: less memory, the same
    /// bits.
    pub fn training(weights: &'a Weights<B>, recompute: bool) -> Self {
        Self::new(weights, Mode::Train { recompute })
    }

    /// Adds dropout to a training pass if the rate is above 0. `seeds` has one seed for each row.
    #[must_use]
    pub fn with_dropout(self, rate: f64, seeds: &Arc<[u64]>) -> Self {
        Self { dropout: Dropout::new(rate, seeds), ..self }
    }

    /// Creates a forward pass without a backward pass.
    pub fn measuring(weights: &'a Weights<B>) -> Self {
        Self::new(weights, Mode::Measure)
    }

    /// Creates a forward pass over the tokens that follow those that `cache` has seen: at first
    /// those of a prompt, then one token of each row. Attention adds its keys and values to the
    /// cache; heads return the logits of the last position alone.
    pub fn generating(weights: &'a Weights<B>, cache: &'a mut Cache<B>) -> Self {
        cache.begin();
        Self::new(weights, Mode::Generate(cache))
    }

    /// Returns the model's parameters.
    pub fn weights(&self) -> &'a Weights<B> {
        self.weights
    }

    /// Returns the cache of the previous positions, or `None` if the pass does not generate.
    pub fn cache(&mut self) -> Option<&mut Cache<B>> {
        match &mut self.mode {
            Mode::Generate(cache) => Some(cache),
            _ => None,
        }
    }

    /// Returns a layer's product, computed by [`Weights::product`] or, in generation, by
    /// [`Kernels::wide_product`].
    ///
    /// # Shapes
    /// - a: `[m, k]`, b: `[k, n]`
    /// - output: `[m, n]`
    pub(super) fn product(&self, a: Tensor<B, 2>, b: Tensor<B, 2>) -> Tensor<B, 2> {
        match self.mode {
            Mode::Generate(_) => B::wide_product(a, b),
            _ => self.weights.layer_product(a, b),
        }
    }

    /// Returns [`Self::product`] plus a bias of shape `[n]`.
    pub(super) fn affine(&self, a: Tensor<B, 2>, b: Tensor<B, 2>, bias: Tensor<B, 1>) -> Tensor<B, 2> {
        match self.mode {
            Mode::Generate(_) => B::wide_product(a, b) + bias.unsqueeze(),
            _ => self.weights.affine(a, b, bias),
        }
    }

    /// Returns the position of each row's single token, in a generating pass after the first.
    /// Positions start at 0 in all other passes.
    pub fn rows_at(&self) -> Option<&[usize]> {
        match &self.mode {
            Mode::Generate(cache) => Some(cache.positions()).filter(|positions| !positions.is_empty()),
            _ => None,
        }
    }

    /// Returns the cache, in a generating pass after the first.
    pub(super) fn later_cache(&mut self) -> Option<&mut Cache<B>> {
        self.cache().filter(|cache| !cache.positions().is_empty())
    }

    /// Turns an operator's output into a value. `needed` says whether the backward pass has to
    /// visit it; `backward` receives the gradient of the output.
    pub fn note(
        &mut self,
        value: Tensor<B, 3>,
        needed: bool,
        backward: impl FnOnce(Tensor<B, 3>, &mut Backward<'_, B>) + 'a,
    ) -> Var<B> {
        let slot = match self.mode {
            Mode::Train { .. } if needed => {
                let output = self.fresh();
                self.nodes.push(Node::Operator { output, backward: Box::new(backward) });
                Some(output)
            }
            Mode::Skim if needed => Some(Slot::UNUSED),
            _ => None,
        };
        Var { value, slot }
    }

    /// Registers an operator's use of a table, whose uses share one record. Returns whether the
    /// table is trained.
    pub(super) fn use_table(&mut self, table: ParamId) -> bool {
        let trained = self.weights.trains(table);
        if trained && matches!(self.mode, Mode::Train { .. } | Mode::Skim) {
            *self.uses.entry(table).or_default() += 1;
        }
        trained
    }

    /// Leaves the record of a table when the backward pass arrives here, although only a later
    /// operator uses the table. This fixes the order in which squared norms are summed.
    pub fn leave_record_here(&mut self, table: ParamId) {
        if self.use_table(table) {
            self.nodes.push(Node::Table(table));
        }
    }

    /// Applies a block of operators. Its records are passed on together, and it is the unit that is
    /// computed twice if the pass recomputes. `block` must use no values other than its inputs.
    pub fn block<const N: usize>(
        &mut self,
        inputs: [Var<B>; N],
        block: impl Fn(&mut Self, [Var<B>; N]) -> Var<B> + 'a,
    ) -> Var<B> {
        match self.mode {
            Mode::Train { recompute: true } => self.recomputed(inputs, block),
            Mode::Train { recompute: false } => {
                self.nodes.push(Node::BlockStart);
                block(self, inputs)
            }
            _ => block(self, inputs),
        }
    }

    /// Applies blocks one after the other; see [`Self::block`].
    pub fn blocks<T: Copy + 'a>(
        &mut self,
        stream: Var<B>,
        blocks: &[T],
        forward: impl Fn(T, &mut Self, Var<B>) -> Var<B> + Clone + 'a,
    ) -> Var<B> {
        blocks.iter().fold(stream, |stream, &block| {
            let forward = forward.clone();
            self.block([stream], move |pass, [input]| forward(block, pass, input))
        })
    }

    fn recomputed<const N: usize>(
        &mut self,
        inputs: [Var<B>; N],
        block: impl Fn(&mut Self, [Var<B>; N]) -> Var<B> + 'a,
    ) -> Var<B> {
        let (mode, dropout) = (std::mem::replace(&mut self.mode, Mode::Skim), self.dropout.clone());
        let output = block(self, inputs.clone());
        self.mode = mode;
        let weights = self.weights;
        self.note(output.value, output.slot.is_some(), move |grad, back| {
            let mut pass = ForwardPass { dropout, ..ForwardPass::training(weights, false) };
            let outer = inputs.each_ref().map(|input| input.slot);
            let leaves = inputs.map(|input| pass.leaf(input));
            let inner = leaves.each_ref().map(|leaf| leaf.slot);
            let output = block(&mut pass, leaves);
            back.run_block(pass, output.slot.zip(Some(grad)), outer.into_iter().zip(inner));
        })
    }

    /// Returns the same value as the start of a new tape.
    fn leaf(&mut self, input: Var<B>) -> Var<B> {
        let slot = input.slot.is_some().then(|| self.fresh());
        Var { value: input.value, slot }
    }

    fn fresh(&mut self) -> Slot {
        self.slots += 1;
        Slot(self.slots - 1)
    }

    /// Starts the backward pass from an output. `gradient` turns its value into the gradient of the
    /// loss with respect to it.
    pub fn seed(&mut self, output: Var<B>, gradient: impl FnOnce(Tensor<B, 3>) -> Tensor<B, 3>) {
        if let Some(slot) = output.slot {
            self.seeds.push((slot, gradient(output.value)));
        }
    }

    /// Runs the tape in reverse, from the outputs that were seeded. `take` gets the records of each block as soon as they are
    /// complete, the last block first.
    pub fn backward(self, take: &mut dyn FnMut(Vec<GradRecord<B>>)) {
        let Self { weights, nodes, slots, uses, seeds, .. } = self;
        let tables = uses.into_iter().map(|(table, uses)| (table, TableGrads::new(uses))).collect();
        let mut back = Backward { weights, grads: vec![None; slots], records: Vec::new(), tables, take };
        for (slot, grad) in seeds {
            back.add(Some(slot), grad);
        }
        back.run(nodes);
        back.hand_over();
    }
}

/// A backward pass in progress.
pub struct Backward<'p, B: Kernels> {
    /// The weights of the forward pass.
    pub weights: &'p Weights<B>,
    grads: Vec<Option<Tensor<B, 3>>>,
    records: Vec<GradRecord<B>>,
    tables: BTreeMap<ParamId, TableGrads<B>>,
    take: &'p mut dyn FnMut(Vec<GradRecord<B>>),
}

impl<B: Kernels> Backward<'_, B> {
    /// Adds to the gradient of a value.
    pub(super) fn add(&mut self, slot: Option<Slot>, grad: Tensor<B, 3>) {
        let Some(slot) = slot else { return };
        let sum = &mut self.grads[slot.0];
        *sum = Some(match sum.take() {
            Some(sum) => sum + grad,
            None => grad,
        });
    }

    /// Leaves the record of a parameter, made for its place among the trained ones, unless it is
    /// not trained.
    pub fn record(&mut self, param: ParamId, record: impl FnOnce(ParamId) -> GradRecord<B>) {
        self.records.extend(self.weights.trained(param).map(record));
    }

    /// Leaves records of adapters.
    pub fn records(&mut self, records: impl IntoIterator<Item = GradRecord<B>>) {
        self.records.extend(records);
    }

    /// Leaves the gradients of a small parameter, one row for each example. `[batch, n]`
    pub fn explicit(&mut self, param: ParamId, grads: Tensor<B, 2>) {
        self.record(param, |param| GradRecord::Explicit { param, grads });
    }

    /// Leaves the contribution of a look-up to the gradient of a table.
    ///
    /// # Shapes
    /// - tokens: `[batch, looked_up]`, grad: `[batch, looked_up, d]`
    pub fn looked_up(&mut self, table: ParamId, tokens: Tensor<B, 2, Int>, grad: Tensor<B, 3>) {
        self.table(table, |grads| {
            grads.tokens.push(tokens);
            grads.grads.push(grad);
        });
    }

    /// Leaves the contribution of a head to the gradient of the table with which it makes its
    /// logits.
    ///
    /// # Shapes
    /// - hidden: `[batch, targets, d]`, logits_grad: `[batch, targets, vocabulary]`
    pub fn made_logits(&mut self, table: ParamId, hidden: Tensor<B, 3>, logits_grad: Tensor<B, 3>) {
        self.table(table, |grads| grads.head = Some(HeadGrad { hidden, logits: logits_grad }));
    }

    /// Adds a part to a table's gradients; leaves the record if it was the last.
    fn table(&mut self, table: ParamId, add: impl FnOnce(&mut TableGrads<B>)) {
        let Some(grads) = self.tables.get_mut(&table) else { return };
        add(grads);
        grads.missing -= 1;
        if grads.missing == 0 {
            let grads = self.tables.remove(&table);
            self.records.extend(self.weights.trained(table).zip(grads).and_then(|(id, all)| all.record(id)));
        }
    }

    fn run(&mut self, nodes: Vec<Node<'_, B>>) {
        for node in nodes.into_iter().rev() {
            match node {
                Node::BlockStart => self.hand_over(),
                Node::Table(table) => self.table(table, |_| {}),
                Node::Operator { output, backward } => {
                    if let Some(grad) = self.grads[output.0].take() {
                        backward(grad, self);
                    }
                }
            }
        }
    }

    /// Runs the tape of a recomputed block, and passes the gradients of its inputs on.
    fn run_block(
        &mut self,
        pass: ForwardPass<'_, B>,
        seed: Option<(Slot, Tensor<B, 3>)>,
        inputs: impl Iterator<Item = (Option<Slot>, Option<Slot>)>,
    ) {
        let outside = std::mem::replace(&mut self.grads, vec![None; pass.slots]);
        if let Some((output, grad)) = seed {
            self.add(Some(output), grad);
        }
        self.run(pass.nodes);
        let mut inside = std::mem::replace(&mut self.grads, outside);
        for (outer, inner) in inputs {
            if let Some(grad) = inner.and_then(|inner| inside[inner.0].take()) {
                self.add(outer, grad);
            }
        }
        self.hand_over();
    }

    fn hand_over(&mut self) {
        (self.take)(std::mem::take(&mut self.records));
    }
}
