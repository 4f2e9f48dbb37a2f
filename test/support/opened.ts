/** What a suite needs open: opened before its first test, closed after its last one, whatever came of them. */
import type { Test } from 'uvu'

export type Suite = Pick<Test, 'before' | 'after'>

const stacks = new WeakMap<Suite, AsyncDisposableStack>()

/**
 * Returns what gives the opened thing to the tests. `open` puts onto the stack whatever else is to be closed;
 * what was opened last is closed first.
 */
export function opened<Opened>(
  test: Suite,
  open: (stack: AsyncDisposableStack) => Opened | Promise<Opened>,
): () => Opened {
  const stack = stackOf(test)
  let held: { readonly it: Opened } | null = null
  test.before(async () => {
    const it = await open(stack)
    if (isClosable(it)) stack.use(it)
    held = { it }
  })
  return () => {
    if (held === null) throw new Error('nothing is open before the first test')
    return held.it
  }
}

function stackOf(test: Suite): AsyncDisposableStack {
  const found = stacks.get(test)
  if (found !== undefined) return found
  const stack = new AsyncDisposableStack()
  stacks.set(test, stack)
  test.after(() => stack.disposeAsync())
  return stack
}

const isClosable = (value: unknown): value is AsyncDisposable =>
  typeof value === 'object' && value !== null && Symbol.asyncDispose in value
