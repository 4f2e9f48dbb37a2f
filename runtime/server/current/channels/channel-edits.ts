/** Adds, moves and removes channels, with one event for each edit. */
import type { Channels } from '#fleet/channel/channels.ts'
import { editChannel, type ImageChannel, type ChannelFields } from '#fleet/channel/rules/channel.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { By } from '#kit/web/answers/caller.ts'
import type { Site } from '#server/routes/site.ts'
import type { Machine } from '../rules/machine.ts'
import { listArmed } from './rules/channel-order.ts'

export interface ChannelEditDependencies {
  readonly site: Site<Machine>
  readonly channels: Channels
}

/** `image`: not in the catalog; `stale`: not as expected. */
type ChannelRefusal = 'image' | 'stale' | 'too-many'

type IsExpected = (before: ImageChannel | null) => boolean

export const nameImage = ({ catalog }: Pick<Site, 'catalog'>, ref: string): string | null =>
  catalog.snapshot().entries.find((entry) => entry.ref === ref)?.name ?? null

/** Changes no machine. */
export async function saveChannel(
  { site, channels }: ChannelEditDependencies,
  { name, ...fields }: ChannelFields & { readonly name: string },
  by: By,
  isExpected: IsExpected = () => true,
): Promise<Result<ImageChannel, ChannelRefusal>> {
  const at = site.now().toISOString()
  if (nameImage(site, fields.bty_image_ref) === null) return refuse('image')
  const found: { before: ImageChannel | null } = { before: null }
  const saved = await channels.save(name, (before) => {
    found.before = before
    return isExpected(before) ? editChannel(before, name, fields, { actor: by.actor, at }) : null
  })
  if (!saved.ok) return refuse(saved.refusal === 'stays' ? 'stale' : saved.refusal)
  await record(site, by, { before: found.before, after: saved.value })
  return accept(saved.value)
}

/** Resolves to the armed machines, which keep the image; null: absent, or not as expected. */
export async function removeChannel(
  { site, channels }: ChannelEditDependencies,
  name: string,
  by: By,
  isExpected: IsExpected = () => true,
): Promise<Result<boolean, number>> {
  const armed = listArmed(site.machines.peekAll(), name).length
  if (armed > 0) return refuse(armed)
  const before = await channels.remove(name, isExpected)
  if (before !== null) await record(site, by, { before, after: null })
  return accept(before !== null)
}

interface ChannelChange {
  readonly before: ImageChannel | null
  readonly after: ImageChannel | null
}

async function record(site: Site<Machine>, by: By, change: ChannelChange): Promise<void> {
  // Such as the report of images in use to the cache.
  site.changes.announce({ topic: 'settings' })
  const name = (change.after ?? change.before)?.name ?? ''
  const say = (channel: ImageChannel | null) =>
    channel === null ? null : (nameImage(site, channel.bty_image_ref) ?? channel.bty_image_ref)
  const [from, to] = [say(change.before), say(change.after)]
  const [done, summary] = describeChange(name, change, { from, to })
  const event = {
    kind: `settings.channel.${done}`,
    subject_kind: 'settings',
    summary,
    details: { from, to, note: change.after?.note ?? null },
  } as const
  await site.recordAll([event], { subject_id: name, ...by })
}

function describeChange(
  name: string,
  { before, after }: ChannelChange,
  { from, to }: { readonly from: string | null; readonly to: string | null },
): readonly [string, string] {
  if (after === null) return ['removed', `The channel ${name} was removed; it pointed to ${from}`]
  if (before === null) return ['added', `The channel ${name} was added; it points to ${to}`]
  return before.bty_image_ref === after.bty_image_ref
    ? ['noted', `The note of the channel ${name} was saved`]
    : ['moved', `The channel ${name} was moved from ${from} to ${to}`]
}
