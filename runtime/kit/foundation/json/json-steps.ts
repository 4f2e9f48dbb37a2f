/** The grammar of JSON (RFC 8259) as a table: in which state which byte may come, and what follows. */

/** What may come next, or what goes on. */
const STATES = [
  'bad',
  'value',
  'firstItem',
  'firstKey',
  'key',
  'colon',
  'afterItem',
  'afterMember',
  'nothing',
  // In a text, and in a key: behind a backslash, and with one to four digits to come.
  'text',
  'textEscape',
  'text4',
  'text3',
  'text2',
  'text1',
  'name',
  'nameEscape',
  'name4',
  'name3',
  'name2',
  'name1',
  // In a number: behind its sign, a leading zero, a digit, the point, `e`, its sign, a digit of it.
  'sign',
  'zero',
  'whole',
  'point',
  'fraction',
  'e',
  'eSign',
  'exponent',
  't1',
  't2',
  't3',
  'f1',
  'f2',
  'f3',
  'f4',
  'n1',
  'n2',
  'n3',
] as const
type JsonState = (typeof STATES)[number]

const indexOf = (state: JsonState) => STATES.indexOf(state)

export const STATE = {
  bad: indexOf('bad'),
  value: indexOf('value'),
  nothing: indexOf('nothing'),
  afterItem: indexOf('afterItem'),
  afterMember: indexOf('afterMember'),
}

/** The bits of a step that say the next state; the others say what else it means. */
export const PLAIN = 63
export const BEGINS = 64
export const ENDS = 128
export const OPENS = 256
export const CLOSES = 512
export const KEY_BEGINS = 1024
export const KEY_ENDS = 2048
/** The byte is no part of what has ended: it is looked at once more. */
export const AGAIN = 4096

const BLANK = ' \n\r\t'
const NONZERO = '123456789'
const DIGITS = `0${NONZERO}`
const HEX = `${DIGITS}abcdefABCDEF`
const PRINTED = [...Array(256).keys()]
  .filter((byte) => byte >= 0x20 && byte !== 0x22 && byte !== 0x5c)
  .map((byte) => String.fromCharCode(byte))
  .join('')

type Rule = readonly [from: JsonState, bytes: string, to: JsonState, means?: number]

const listValues = (from: JsonState): readonly Rule[] => [
  [from, BLANK, from],
  [from, '{', 'firstKey', BEGINS | OPENS],
  [from, '[', 'firstItem', BEGINS | OPENS],
  [from, '"', 'text', BEGINS],
  [from, '-', 'sign', BEGINS],
  [from, '0', 'zero', BEGINS],
  [from, NONZERO, 'whole', BEGINS],
  [from, 't', 't1', BEGINS],
  [from, 'f', 'f1', BEGINS],
  [from, 'n', 'n1', BEGINS],
]

const listTexts = (name: 'text' | 'name'): readonly Rule[] => [
  [name, PRINTED, name],
  [name, '\\', `${name}Escape`],
  [`${name}Escape`, '"\\/bfnrt', name],
  [`${name}Escape`, 'u', `${name}4`],
  [`${name}4`, HEX, `${name}3`],
  [`${name}3`, HEX, `${name}2`],
  [`${name}2`, HEX, `${name}1`],
  [`${name}1`, HEX, name],
]

const NUMBER_ENDS = ['zero', 'whole', 'fraction', 'exponent'] as const

const RULES: readonly Rule[] = [
  ...listValues('value'),
  ...listValues('firstItem'),
  ['firstItem', ']', 'bad', CLOSES | ENDS],
  ['firstKey', BLANK, 'firstKey'],
  ['firstKey', '"', 'name', KEY_BEGINS],
  ['firstKey', '}', 'bad', CLOSES | ENDS],
  ['key', BLANK, 'key'],
  ['key', '"', 'name', KEY_BEGINS],
  ['name', '"', 'colon', KEY_ENDS],
  ['colon', BLANK, 'colon'],
  ['colon', ':', 'value'],
  ['afterItem', BLANK, 'afterItem'],
  ['afterItem', ',', 'value'],
  ['afterItem', ']', 'bad', CLOSES | ENDS],
  ['afterMember', BLANK, 'afterMember'],
  ['afterMember', ',', 'key'],
  ['afterMember', '}', 'bad', CLOSES | ENDS],
  ['nothing', BLANK, 'nothing'],
  ...listTexts('name'),
  ...listTexts('text'),
  ['text', '"', 'bad', ENDS],
  ['sign', '0', 'zero'],
  ['sign', NONZERO, 'whole'],
  ['whole', DIGITS, 'whole'],
  ['zero', '.', 'point'],
  ['whole', '.', 'point'],
  ['point', DIGITS, 'fraction'],
  ['fraction', DIGITS, 'fraction'],
  ...(['zero', 'whole', 'fraction'] as const).map((from): Rule => [from, 'eE', 'e']),
  ['e', '+-', 'eSign'],
  ['e', DIGITS, 'exponent'],
  ['eSign', DIGITS, 'exponent'],
  ['exponent', DIGITS, 'exponent'],
  ...NUMBER_ENDS.map((from): Rule => [from, `${BLANK},]}`, 'bad', ENDS | AGAIN]),
  ['t1', 'r', 't2'],
  ['t2', 'u', 't3'],
  ['t3', 'e', 'bad', ENDS],
  ['f1', 'a', 'f2'],
  ['f2', 'l', 'f3'],
  ['f3', 's', 'f4'],
  ['f4', 'e', 'bad', ENDS],
  ['n1', 'u', 'n2'],
  ['n2', 'l', 'n3'],
  ['n3', 'l', 'bad', ENDS],
]

const createSteps = () => {
  const steps = new Uint16Array(STATES.length << 8)
  for (const [from, bytes, to, means = 0] of RULES) {
    for (const byte of bytes) steps[(indexOf(from) << 8) | byte.charCodeAt(0)] = indexOf(to) | means
  }
  return steps
}

/** By `state << 8 | byte`: the next state (where a value has ended, the reader knows it), and what it means. */
export const STEPS = createSteps()

const ENDINGS: ReadonlySet<number> = new Set(NUMBER_ENDS.map(indexOf))

/** A number that ends with the document. */
export const isNumberEnd = (state: number): boolean => ENDINGS.has(state)
