"""Small tokenizer.json files of the Hugging Face tokenizers library, with the ids that it gives for some lines.

    python3 tests/peers/make_tokenizer_golden.py tests/golden/tokenizer

Writes OUT/NAME/{tokenizer.json, tokenizer_config.json, expect.json}: `gpt2` is cut by ByteLevel itself, `llama3` by an
expression before it, with ignore_merges and a token before every text.
"""
import json
import os
import sys

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXT = ["the quick brown fox jumps over the lazy dog", "whether the weather is cold, whether the weather is hot",
        "she sells sea shells by the sea shore; the shells she sells are sea shells", "un éléphant ça trompe énormément",
        "12345 and 678,90 make 69135", "it's we'll they've I'd", "日本語の文章です。日本語", "\n\n  indented\n\ttabs\t\n"] * 4
LINES = ["the weather is hot", "She'll sell 12345 shells\n\n", "  spaces   and\ttabs  ", "énormément 日本", "", "<|end|>the<|end|>",
         "a\u0000b", "\u00a0x"]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")


def write(out, name, pre_tokenizer, ignore_merges, begin):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    specials = ["<|begin|>", "<|end|>"]
    tokenizer.train_from_iterator(TEXT, trainers.BpeTrainer(
        vocab_size=340, special_tokens=specials, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    level = processors.ByteLevel(trim_offsets=False)
    if begin:
        template = processors.TemplateProcessing(single="<|begin|> $A",
                                                 special_tokens=[("<|begin|>", tokenizer.token_to_id("<|begin|>"))])
        tokenizer.post_processor = processors.Sequence([level, template])
    else:
        tokenizer.post_processor = level
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(folder + "/tokenizer.json", pretty=False)
    with open(folder + "/tokenizer_config.json", "w") as f:
        json.dump(dict(bos_token="<|begin|>", eos_token="<|end|>", tokenizer_class="PreTrainedTokenizerFast"), f)
        f.write("\n")
    with open(folder + "/expect.json", "w") as f:
        json.dump(dict(lines=[dict(text=t, ids=tokenizer.encode(t).ids) for t in LINES]), f)
        f.write("\n")
    print(name, tokenizer.get_vocab_size())


def main():
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    write(sys.argv[1], "gpt2", pre_tokenizers.ByteLevel(add_prefix_space=False), False, False)
    write(sys.argv[1], "llama3", pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), byte_level]),
          True, True)


main()
