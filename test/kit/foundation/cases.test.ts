import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideCase, type Cases } from '#kit/foundation/cases.ts'

const test = suite('case')

type Shape =
  | { readonly kind: 'circle'; readonly radius: number }
  | { readonly kind: 'box'; readonly sides: readonly [number, number] }

const MESSAGES: Cases<'kind', Shape, string> = {
  circle: ({ radius }) => `a circle of ${radius}`,
  box: ({ sides: [wide, high] }) => `a box of ${wide} by ${high}`,
}

test('each member goes to its own entry, in any tag', () => {
  const circle: Shape = { kind: 'circle', radius: 2 }
  const box: Shape = { kind: 'box', sides: [3, 4] }
  assert.is(decideCase(MESSAGES, 'kind', circle), 'a circle of 2')
  assert.is(decideCase(MESSAGES, 'kind', box), 'a box of 3 by 4')
})
test('an entry sees the fields of its own member alone, and none may be missing', () => {
  // @ts-expect-error: a box has no radius.
  const wrong: Cases<'kind', Shape, string> = { ...MESSAGES, box: ({ radius }) => `${radius}` }
  // @ts-expect-error: the box is missing.
  const less: Cases<'kind', Shape, string> = { circle: () => '' }
  assert.equal([Object.keys(wrong), Object.keys(less)], [['circle', 'box'], ['circle']])
})
test.run()
