/** Opens further places of an image. */
import type { Source } from '../image/source.ts'
import type { Sources } from '../image/sources.ts'

interface Mirrors extends AsyncDisposable {
  readonly mirrors: readonly Source[]
}

/** Those that can be opened: the image itself is elsewhere as well. */
export async function openMirrors(
  sources: Sources,
  locations: readonly string[],
  signal: AbortSignal,
): Promise<Mirrors> {
  await using undo = new AsyncDisposableStack()
  const opening = await Promise.allSettled(locations.map((at) => sources.open(at, { signal })))
  const mirrors = opening.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  for (const source of mirrors) undo.use(source)
  const held = undo.move()
  return { mirrors, [Symbol.asyncDispose]: () => held.disposeAsync() }
}
