/** What questions on a terminal say by themselves, in the language that is in use; another language is one more table, named here. */
import type { Translated } from '#kit/texts/text.ts'

const ENGLISH = {
  /** Two things of a list, or the list so far and its last one. */
  lists: {
    either: '{one} or {other}',
    both: '{one} and {other}',
  },
  chosenByKeys: {
    move: '↑ ↓ move',
    choose: 'Enter chooses',
    leave: 'Esc leaves',
    help: '? help',
  },
  /** The same for terminals that have fewer characters. */
  chosenByKeysPlain: {
    move: 'Up, Down: move',
    choose: 'Enter: choose',
    leave: 'Esc: leave',
    help: '?: help',
  },
  footer: {
    choose: '[{keys}] choose',
    arrows: 'arrows',
    number: 'number',
    several: '[{keys}] tick several',
    space: 'space',
    numbers: '1 2',
    filter: '[/] filter',
    help: '[?] help',
  },
  page: '{from} to {to} of {count}; PgUp and PgDn turn the page',
  nothingMatches: 'nothing matches',
  /** `{noun}`: what the list asks for, in lower case. */
  nothingYet: 'There is no {noun} to choose yet.',
  outOfRange: '"{text}" is out of range; valid {noun} numbers are 1..{count}.',
  refused: 'Number {number} cannot be chosen: {reason}.',
  thatOneRefused: 'That one cannot be chosen.',
  noMatch: 'Nothing that can be chosen matches "{text}".',
  numbers: 'a number from 1 to {count}',
  type: 'Type {choices}.',
  unrecognised: 'Unrecognised choice "{text}"; type {choices}.',
  lineTooLong: 'the line is too long',
  cancelled: 'cancelled',
} as const

/** What the table of any language satisfies. */
type PromptTranslation = Translated<typeof ENGLISH>

export const PROMPT_TEXTS = ENGLISH satisfies PromptTranslation
