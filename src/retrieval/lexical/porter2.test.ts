import fc from "fast-check";
import { expect, test } from "vitest";
import { porter2 } from "./porter2.ts";
import { porter2ByRules } from "./porter2-rules.fixture.ts";

/** Word and stem, grouped by the rule that each pair shows. */
const pairs = `
consist consist   consisted consist   consistency consist   consistent consist   consistently consist
knack knack   knackeries knackeri   knavish knavish   kneaded knead   kneel kneel   knightly knight
caresses caress   flies fli   dies die   ties tie   cries cri   gas gas   this this   gaps gap   kiwis kiwi   cactus cactus
agreed agre   feed feed   plastered plaster   bled bled   motoring motor   sing sing   luxuriated luxuri
hopping hop   hoping hope   falling fall   filing file   hissing hiss   fizzed fizz   failing fail   tanned tan
cry cri   by by   say say   enjoy enjoy   happy happi   sky sky   youth youth   boyish boyish
relational relat   conditional condit   rational ration   vietnamization vietnam   predication predic   operator oper
feudalism feudal   decisiveness decis   hopefulness hope   callousness callous   formality formal   sensitivity sensit
apology apolog   possibly possibl   radically radic   vilely vile   analogously analog   sadly sad
triplicate triplic   formative format   formalize formal   electrical electr   hopeful hope   goodness good
revival reviv   allowance allow   inference infer   airliner airlin   adjustable adjust   defensible defens
replacement replac   adoption adopt   communism communism   activate activ   effective effect   opinion opinion
probate probat   rate rate   cease ceas   controlling control   rolled roll   bee bee   ease eas
generate generat   general general   generically generic   community communiti   arsenal arsenal
skis ski   skies sky   dying die   idly idl   gently gentl   early earli   only onli   news news   atlas atlas   andes andes
innings inning   proceed proceed   succeeds succeed   herrings herring
`
  .trim()
  .split(/\s{2,}|\n/)
  .map((pair) => pair.split(" ") as [string, string]);

test("there are enough pairs to mean something", () => {
  expect(pairs.length).toBeGreaterThanOrEqual(100);
});

test.each(pairs)("%s has the stem %s", (word, stem) => {
  expect(porter2(word)).toBe(stem);
});

test.each(["", "a", "at", "2nd", "élan", "москва"])("%j, short or not English, stays as it is", (word) => {
  expect(porter2(word)).toBe(word);
});

test("any word has the stem that the rules give, letter by letter or put together from usual parts", () => {
  const letter = fc.constantFrom(..."aeiouybcdfgklmnprstwxyz");
  const parts =
    "ational fulness iveness ization ousness biliti lessli tional alism aliti ation entli ivity ously ably ally ance ator enci izer bly " +
    "ogy logi ly li ative alize icate icity ical ness ful ement ment ent ism ate iti ous ive ize al er ic sion tion e l ll s ss us sses " +
    "ies ied eed eedly ed edly ing ingly at bl iz tt nn y yy ay gener commun arsen c o pr str";
  const part = fc.oneof(
    fc.constantFrom(...parts.split(" ")),
    letter,
    fc.string({ unit: letter, maxLength: 3 }),
  );
  const words = [
    fc.string({ unit: letter, maxLength: 12 }),
    fc.array(part, { maxLength: 5 }).map((list) => list.join("")),
  ];
  fc.assert(
    fc.property(fc.oneof(...words), (word) => {
      expect(porter2(word)).toBe(porter2ByRules(word));
    }),
    { numRuns: 20_000 },
  );
});

test("a word of any length has its stem", () => {
  const word = "na".repeat(500);
  expect(porter2(`${word}ing`)).toBe(porter2ByRules(`${word}ing`));
});
