/**
 * The suites of uvu, with each failure named when it happens, not when its suite is over, and with the
 * reason printed where `before` fails, which uvu keeps to itself.
 */
import { inspect } from 'node:util'
import * as uvu from 'uvu'

export * from 'uvu'

export function suite<Context>(title = 'the tests', context?: Context): uvu.Test<Context> {
  const made = uvu.suite(title, context)
  const { before } = made
  function test(name: string, action: uvu.Callback<Context>) {
    made(
      name,
      explain(action, (reason) => `"${name}": ${reason.split('\n', 1)[0]}`),
    )
  }
  const prepare = (action: uvu.Callback<Context>) =>
    before(explain(action, (reason) => `before ${title}\n${reason}`))
  return Object.assign(test, made, { before: Object.assign(prepare, before) })
}

function explain<Context>(
  action: uvu.Callback<Context>,
  say: (reason: string) => string,
): uvu.Callback<Context> {
  return async (state) => {
    try {
      await action(state)
    } catch (thrown) {
      process.stdout.write(`\n   FAIL: ${say(inspect(thrown))}\n`)
      throw thrown
    }
  }
}
