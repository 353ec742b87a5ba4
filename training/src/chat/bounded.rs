//! Bounds the size of a template's values. The library charges for strings and for the items that
//! it visits, but a list that is added to itself, or that names another list twice, doubles for the
//! price of one instruction. Each expression of a template therefore passes a filter that counts
//! the contents of its value, and refuses more than [`HEAVIEST`].

use std::ops::Range;

use minijinja::machinery::{Span, ast, parse};
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, filters};

/// Largest weight of a value: bytes of text, and [`ITEM`] for each item of a list or an object,
/// counted as often as it is named.
const HEAVIEST: usize = 1 << 24;
/// Number of bytes for which an item counts.
const ITEM: usize = 32;
/// Largest depth of nested lists and objects.
const DEEPEST: usize = 100;
/// Items that are counted for a unit of fuel.
const ITEMS_FOR_FUEL: u64 = 64;
/// Number of consecutive additions after which their result is counted. Each count nests
/// parentheses, of which the parser accepts some hundred levels.
const IN_A_ROW: usize = 8;

/// Name of the filter. Templates can redefine a function, but not this filter.
const FILTER: &str = "|within_bounds";

/// Adds the filter, and removes the library's filters that can make large values before it sees
/// them.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    environment.add_filter(&FILTER[1..], |state: &State<'_, '_>, value: Value| within_bounds(state, value));
    // Jinja has neither of these filters.
    environment.remove_filter("chain");
    environment.remove_filter("zip");
    environment.add_filter(
        "sum",
        |state: &State<'_, '_>,
         values: Value,
         attribute: Option<&str>,
         start: Option<Value>,
         named: Kwargs| {
            let first = match &start {
                Some(start) => Some(start.clone()),
                None => named.peek::<Option<Value>>("start")?,
            };
            if first.is_some_and(|first| !first.is_number()) {
                let what = "sum: a start that is no number; add lists with +";
                return Err(Error::new(ErrorKind::InvalidOperation, what));
            }
            filters::sum(state, values, attribute, start, named)
        },
    );
}

/// Refuses a value that holds too much. Lazy items are created now, so that the counted value is
/// the one that is used.
fn within_bounds(state: &State<'_, '_>, value: Value) -> Result<Value, Error> {
    let is_list = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !is_list && value.kind() != ValueKind::Map {
        return Ok(value);
    }
    let mut left = HEAVIEST;
    let counted = count(&value, 0, &mut left);
    state.consume_fuel(((HEAVIEST - left) / ITEM) as u64 / ITEMS_FOR_FUEL)?;
    counted?;
    if value.kind() == ValueKind::Iterable {
        return Ok(Value::from(value.try_iter()?.collect::<Vec<_>>()));
    }
    Ok(value)
}

/// Subtracts the size of a value and its contents from the remaining limit.
fn count(value: &Value, depth: usize, left: &mut usize) -> Result<(), Error> {
    let refused = |what: String| Err(Error::new(ErrorKind::InvalidOperation, what));
    if depth > DEEPEST {
        return refused(format!("more than {DEEPEST} lists and objects in one another; make them flatter"));
    }
    let own = ITEM + value.as_str().map_or(0, str::len);
    let Some(rest) = left.checked_sub(own) else {
        *left = 0;
        return refused(format!(
            "a list or an object of more than {} MiB; do not add a list to itself again and again",
            HEAVIEST >> 20
        ));
    };
    *left = rest;
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            value.try_iter()?.try_for_each(|item| count(&item, depth + 1, left))
        }
        ValueKind::Map => value.try_iter()?.try_for_each(|key| {
            count(&key, depth + 1, left)?;
            count(&value.get_item(&key)?, depth + 1, left)
        }),
        _ => Ok(()),
    }
}

/// A template whose expressions pass the filter.
#[derive(Debug)]
pub(super) struct Bounded {
    pub source: String,
    /// Places of the insertions in the template, in bytes, and their numbers of bytes.
    inserted: Vec<(usize, usize)>,
}

impl Bounded {
    /// # Errors
    /// The fault of a template that is not Jinja.
    pub fn new(template: &str, environment: &Environment<'_>) -> Result<Self, Error> {
        let parsed = parse(template, super::TEMPLATE, environment.syntax().clone())?;
        let mut insertions = Insertions(Vec::new());
        insertions.statement(&parsed);
        let Insertions(mut parts) = insertions;
        // Inner expressions were visited before outer ones, and keep that order if both end at the
        // same place.
        parts.sort_by_key(|(at, _)| *at);
        let (mut source, mut copied) = (String::with_capacity(template.len()), 0);
        for (at, text) in &parts {
            source.push_str(&template[copied..*at]);
            source.push_str(text);
            copied = *at;
        }
        source.push_str(&template[copied..]);
        Ok(Self { source, inserted: parts.into_iter().map(|(at, text)| (at, text.len())).collect() })
    }

    /// Returns the place in [`Self::source`] of a part of the template that begins and ends with a
    /// tag.
    pub fn moved(&self, part: &Range<usize>) -> Range<usize> {
        let moved = |at: usize| {
            let before = self.inserted.iter().take_while(|(place, _)| *place < at);
            at + before.map(|(_, bytes)| bytes).sum::<usize>()
        };
        moved(part.start)..moved(part.end)
    }
}

/// Texts to be inserted, with their places in bytes.
struct Insertions(Vec<(usize, &'static str)>);

impl Insertions {
    fn after(&mut self, span: Span) {
        self.0.push((span.end_offset as usize, FILTER));
    }

    fn around(&mut self, span: Span) {
        self.0.push((span.start_offset as usize, "("));
        self.0.push((span.end_offset as usize, ")"));
        self.after(span);
    }

    fn statements(&mut self, all: &[ast::Stmt<'_>]) {
        all.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &ast::Stmt<'_>) {
        use ast::Stmt::{
            AutoEscape, Break, CallBlock, Continue, Do, EmitExpr, EmitRaw, FilterBlock, ForLoop, IfCond,
            Macro, Set, SetBlock, Template, WithBlock,
        };
        match statement {
            Template(all) => self.statements(&all.children),
            // The result of this call is written, so its length costs fuel.
            EmitExpr(emitted) => match &emitted.expr {
                ast::Expr::Call(call) => self.call(call),
                other => self.value(other),
            },
            ForLoop(all) => {
                self.value(&all.iter);
                all.filter_expr.iter().for_each(|filter| self.value(filter));
                self.statements(&all.body);
                self.statements(&all.else_body);
            }
            IfCond(all) => {
                self.value(&all.expr);
                self.statements(&all.true_body);
                self.statements(&all.false_body);
            }
            WithBlock(all) => {
                all.assignments.iter().for_each(|(_, value)| self.value(value));
                self.statements(&all.body);
            }
            Set(set) => self.value(&set.expr),
            SetBlock(set) => {
                set.filter.iter().for_each(|filter| self.filter_of_block(filter));
                self.statements(&set.body);
            }
            AutoEscape(all) => {
                self.value(&all.enabled);
                self.statements(&all.body);
            }
            FilterBlock(all) => {
                self.filter_of_block(&all.filter);
                self.statements(&all.body);
            }
            Macro(all) => self.definition(all),
            CallBlock(all) => {
                self.call(&all.call);
                self.definition(&all.macro_decl);
            }
            Do(done) => self.call(&done.call),
            EmitRaw(_) | Continue(_) | Break(_) => {}
        }
    }

    fn definition(&mut self, all: &ast::Macro<'_>) {
        all.defaults.iter().for_each(|value| self.value(value));
        self.statements(&all.body);
    }

    /// Visits the filters of a block, which have its text in place of a first expression.
    fn filter_of_block(&mut self, filter: &ast::Expr<'_>) {
        if let ast::Expr::Filter(filter) = filter {
            filter.expr.iter().for_each(|before| self.filter_of_block(before));
            self.arguments(&filter.args);
        }
    }

    fn call(&mut self, call: &ast::Call<'_>) {
        self.base(&call.expr);
        self.arguments(&call.args);
    }

    fn arguments(&mut self, all: &[ast::CallArg<'_>]) {
        use ast::CallArg::{Kwarg, KwargSplat, Pos, PosSplat};
        for argument in all {
            match argument {
                Pos(value) | Kwarg(_, value) | PosSplat(value) | KwargSplat(value) => self.value(value),
            }
        }
    }

    /// Visits the expression before a dot, an index or the parentheses of a call.
    fn base(&mut self, expression: &ast::Expr<'_>) {
        use ast::Expr::{BinOp, Call, Compare, Const, Filter, GetAttr, GetItem, IfExpr, List, Map};
        use ast::Expr::{Slice, Test, Tuple, UnaryOp, Var};
        match expression {
            Var(_) | Const(_) => {}
            GetAttr(of) => self.base(&of.expr),
            GetItem(of) => {
                self.base(&of.expr);
                self.value(&of.subscript_expr);
            }
            Slice(of) => {
                self.base(&of.expr);
                [&of.start, &of.stop, &of.step].into_iter().flatten().for_each(|end| self.value(end));
            }
            Call(call) => self.call(call),
            List(list) => list.items.iter().for_each(|item| self.value(item)),
            Tuple(tuple) => tuple.items.iter().for_each(|item| self.value(item)),
            Map(map) => map.keys.iter().chain(&map.values).for_each(|item| self.value(item)),
            // These expressions can only stand here in parentheses.
            UnaryOp(_) | BinOp(_) | Compare(_) | IfExpr(_) | Filter(_) | Test(_) => self.value(expression),
        }
    }

    /// Visits an expression whose value is used unchanged.
    fn value(&mut self, expression: &ast::Expr<'_>) {
        use ast::Expr::{BinOp, Call, Compare, Const, Filter, GetAttr, GetItem, IfExpr, List, Map};
        use ast::Expr::{Slice, Test, Tuple, UnaryOp, Var};
        match expression {
            Const(_) => {}
            Var(_) | GetAttr(_) | GetItem(_) | Slice(_) | Call(_) | List(_) | Tuple(_) | Map(_) => {
                self.base(expression);
                self.after(expression.span());
            }
            UnaryOp(of) => self.value(&of.expr),
            BinOp(of) => self.operation(of, 0),
            Compare(all) => {
                self.value(&all.expr);
                all.ops.iter().for_each(|operand| self.value(&operand.expr));
            }
            IfExpr(all) => {
                self.value(&all.test_expr);
                self.value(&all.true_expr);
                all.false_expr.iter().for_each(|value| self.value(value));
            }
            Filter(filter) => {
                filter.expr.iter().for_each(|value| self.value(value));
                self.arguments(&filter.args);
                self.after(expression.span());
            }
            Test(test) => {
                self.value(&test.expr);
                self.arguments(&test.args);
            }
        }
    }

    /// Visits an operation that `following` operations of the same kind follow.
    fn operation(&mut self, of: &ast::Spanned<ast::BinOp<'_>>, following: usize) {
        let makes_list = |of: &ast::BinOp<'_>| match of.op {
            // A constant is a number or a text, so a sum with it is no list.
            ast::BinOpKind::Add => {
                ![&of.left, &of.right].iter().any(|side| matches!(side, ast::Expr::Const(_)))
            }
            ast::BinOpKind::Mul => true,
            _ => false,
        };
        match &of.left {
            ast::Expr::BinOp(left) if makes_list(of) => self.operation(left, following + 1),
            ast::Expr::BinOp(left) => self.operation(left, 0),
            left => self.value(left),
        }
        self.value(&of.right);
        if makes_list(of) && following.is_multiple_of(IN_A_ROW) {
            self.around(of.span());
        }
    }
}
