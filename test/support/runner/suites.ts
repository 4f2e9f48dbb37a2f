/** The suites of uvu, with the reason printed where `before` fails. */
import { inspect } from 'node:util'
import * as uvu from 'uvu'

export * from 'uvu'

export function suite<Context>(title?: string, context?: Context): uvu.Test<Context> {
  const made = uvu.suite(title, context)
  const { before } = made
  const explained = (prepare: uvu.Callback<Context>) =>
    before(async (state) => {
      try {
        await prepare(state)
      } catch (thrown) {
        process.stdout.write(`\n   FAIL  before ${title ?? 'the tests'}\n${inspect(thrown)}\n`)
        throw thrown
      }
    })
  return Object.assign(made, { before: Object.assign(explained, before) })
}
