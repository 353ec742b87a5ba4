//! The examples that `--help` ends with.

pub(super) const TRAIN: &str = "\
Examples:
  Train on private notes, a unit each, with ε = 2:
    dp-tokenizer train --input notes.jsonl --epsilon 2 --delta 1e-7 --units 100000 --out vocabulary
  The same for users, who may have many notes each:
    dp-tokenizer train --input notes.jsonl --unit user --user-field author --epsilon 2 --delta 1e-7 --out vocabulary
  Train BERT's kind of vocabulary on a column of public tables:
    dp-tokenizer train --public --input 'tables/*.csv' --text-field body --model wordpiece --out vocabulary
  Try it without a text:
    dp-tokenizer train --embedded --epsilon 2 --delta 1e-6 --vocab-size 1000 --out vocabulary";

pub(super) const COUNT: &str = "\
Examples:
  Count four parts, each on a machine of its own, then release words and train:
    dp-tokenizer count --input part-1.jsonl --shard 1/4 --unit user --user-field author --out 1.run
    dp-tokenizer train --runs *.run --unit user --epsilon 2 --delta 1e-7 --out vocabulary
  The same in a Slurm array of 64 jobs:
    dp-tokenizer count --input parts/$SLURM_ARRAY_TASK_ID.jsonl.zst --shard $SLURM_ARRAY_TASK_ID/64 --overwrite --out $SLURM_ARRAY_TASK_ID.run
  Eight parts by eight processes that mpirun starts:
    mpirun -np 8 dp-tokenizer count --input 'part-{}.jsonl' --shard auto --unit user --user-field author --overwrite --out 'part-{}.run'";

pub(super) const ENCODE: &str = "\
Examples:
  Show the tokens of a line:
    echo 'the fever rises' | dp-tokenizer encode --tokenizer vocabulary --as tokens
  Ids of all texts of a file, 128 each:
    dp-tokenizer encode --tokenizer vocabulary --input notes.jsonl --max-length 128 --pad
  The three best ways to cut a line, with their scores:
    echo 'the fever rises' | dp-tokenizer encode --tokenizer vocabulary --n-best 3 --as tokens
  Random ones, for subword regularization:
    dp-tokenizer encode --tokenizer vocabulary --input notes.txt --sample --alpha 0.2 --seed 1
  A token file for training:
    dp-tokenizer encode --tokenizer vocabulary --input notes.jsonl --out notes.tokens";

pub(super) const DECODE: &str = "\
Examples:
  dp-tokenizer decode --tokenizer vocabulary --input ids.txt --skip-special-tokens
  a-model-that-writes-ids | dp-tokenizer decode --tokenizer vocabulary --stream";
