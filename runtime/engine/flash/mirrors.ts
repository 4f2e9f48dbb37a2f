/** Opens further places of an image. */
import type { Sources } from '../image/sources/sources.ts'

/** Those that can be opened: the image itself is elsewhere as well. */
export async function openMirrors(
  sources: Sources,
  locations: readonly string[],
  signal: AbortSignal,
) {
  await using undo = new AsyncDisposableStack()
  const opening = await Promise.allSettled(locations.map((at) => sources.open(at, { signal })))
  const mirrors = opening.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  for (const source of mirrors) undo.use(source)
  const held = undo.move()
  return { mirrors, [Symbol.asyncDispose]: () => held.disposeAsync() }
}
