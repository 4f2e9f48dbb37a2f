/** Lets several callers at the same time share one call of a function that is expensive. */

/**
 * A call that comes while one is under way waits for the next, which begins afterwards and serves all
 * that asked for the same meanwhile: nobody gets a result from before they asked.
 */
export function createTogether<Argument, Value>(
  act: (argument: Argument) => Promise<Value>,
): (argument: Argument) => Promise<Value> {
  let last: Promise<unknown> = Promise.resolve()
  const waiting = new Map<Argument, Promise<Value>>()
  return (argument) => {
    const shared = waiting.get(argument)
    if (shared !== undefined) return shared
    const call = last.then(() => {
      waiting.delete(argument)
      return act(argument)
    })
    waiting.set(argument, call)
    // Nothing of a result is kept beyond those that asked for it.
    last = call.then(NOTHING, NOTHING)
    return call
  }
}

const NOTHING = () => undefined
