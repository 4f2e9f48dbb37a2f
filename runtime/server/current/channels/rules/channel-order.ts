/** Current line: which image a machine gets by a channel. It is resolved when the machine is armed, and never again by itself. */
import { z } from 'zod'
import { ChannelNameSchema } from '#fleet/channel/rules/channel.ts'
import { fieldError, type FieldError } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { applyUpsert } from '#server/current/machines/rules/operator-edits.ts'
import { BOOT_MODES, isFlashMode } from '#server/current/machines/rules/boot-mode.ts'
import { hasFlashOrder } from '#server/current/machines/rules/disarming.ts'
import {
  channelOf,
  type Machine,
  type MachineChannel,
} from '#server/current/machines/rules/machine.ts'
import type { MachineUpsert, UpsertRequest } from '#server/current/machines/rules/upsert.ts'

export type FindChannel = (name: string) => string | null

const absent = (name: string) => `There is no channel ${name}. Select an image or another channel.`
const moved = (name: string) => `The channel ${name} now points to another image. Check it again.`

interface ResolvedUpsert {
  readonly upsert: MachineUpsert
  readonly channel: ResolvedChannel
}

/** Undefined: unchanged while the image stays. */
type ResolvedChannel = MachineChannel | null | undefined

/** As `applyUpsert`, with the channel's image. The refusal may be about the channel. */
export function applyRequest(
  before: Machine | null,
  request: UpsertRequest,
  { mac, find, now }: { readonly mac: Mac; readonly find: FindChannel; readonly now: string },
): Result<Machine, readonly FieldError[]> {
  const resolved = resolveUpsert(before, request, find)
  if (!resolved.ok) return resolved
  const { upsert, channel } = resolved.value
  const applied = applyUpsert(before, mac, upsert, now)
  return applied.ok && channel !== undefined ? accept({ ...applied.value, channel }) : applied
}

/** An edit that arms nothing keeps the image. An image beside the channel is the expected one. */
function resolveUpsert(
  before: Machine | null,
  { channel: name, ...upsert }: UpsertRequest,
  find: FindChannel,
): Result<ResolvedUpsert, readonly FieldError[]> {
  if (name === undefined || name === null) return accept({ upsert, channel: name })
  const ref = keepsImage(before, upsert, name) ? before.bty_image_ref : find(name)
  if (ref === null) return refuse([fieldError(['channel'], absent(name))])
  const expected = upsert.bty_image_ref
  if (expected !== null && expected !== ref) return refuse([fieldError(['channel'], moved(name))])
  return accept({ upsert: { ...upsert, bty_image_ref: ref }, channel: { name, ref } })
}

const keepsImage = (
  before: Machine | null,
  { boot_mode, target_disk_serial }: MachineUpsert,
  channel: string,
): before is Machine =>
  before !== null &&
  channelOf(before) === channel &&
  (!isFlashMode(boot_mode) ||
    (before.boot_mode === boot_mode && before.target_disk_serial === target_disk_serial))

const AskedSchema = z
  .looseObject({
    channel: ChannelNameSchema.optional(),
    bty_image_ref: z.string().nullable().optional(),
    boot_mode: z.enum(BOOT_MODES).optional(),
  })
  .nullish()
  .catch(null)

interface ResolvedAction {
  readonly machine: Machine
  readonly parameters: unknown
  readonly channel: ResolvedChannel
}

/** Naming a channel, or arming a machine that has one, takes the image it points to now. */
export function resolveAction(
  machine: Machine,
  action: string,
  parameters: unknown,
  find: FindChannel,
): Result<ResolvedAction, string> {
  const { channel: named, ...asked } = AskedSchema.parse(parameters) ?? {}
  const { bty_image_ref: expected } = asked
  if (named === undefined && expected !== undefined) {
    return accept({ machine, parameters, channel: null })
  }
  const name = named ?? (isArming(machine, action, asked.boot_mode) ? channelOf(machine) : null)
  if (name === null) return accept({ machine, parameters, channel: undefined })
  const found = findExpected(machine, name, expected, find)
  if (!found.ok) return found
  const [ref, channel] = [found.value, { name, ref: found.value }]
  return action === 'mode'
    ? accept({
        machine: { ...machine, bty_image_ref: ref, channel },
        parameters: { boot_mode: asked.boot_mode },
        channel,
      })
    : accept({ machine, parameters: { ...asked, bty_image_ref: ref }, channel })
}

/**
 * Refuses if another image was expected. A body that names channel and image as the machine has
 * them repeats its order, wherever the channel points now.
 */
function findExpected(
  machine: Machine,
  name: string,
  expected: string | null | undefined,
  find: FindChannel,
): Result<string, string> {
  if (
    typeof expected === 'string' &&
    name === channelOf(machine) &&
    expected === machine.bty_image_ref
  ) {
    return accept(expected)
  }
  const ref = find(name)
  if (ref === null) return refuse(absent(name))
  return typeof expected === 'string' && expected !== ref ? refuse(moved(name)) : accept(ref)
}

/** The same mode again begins nothing. */
const isArming = (
  machine: Machine,
  action: string,
  mode: Machine['boot_mode'] | undefined,
): boolean =>
  action === 'flash' ||
  (action === 'mode' && mode !== undefined && isFlashMode(mode) && mode !== machine.boot_mode)

/** With the image that its channel points to now. */
export function resolveArming(machine: Machine, find: FindChannel): Result<Machine, string> {
  const name = channelOf(machine)
  if (name === null) return accept(machine)
  const ref = find(name)
  return ref === null
    ? refuse(absent(name))
    : accept({ ...machine, bty_image_ref: ref, channel: { name, ref } })
}

export const listArmed = (machines: readonly Machine[], name: string): readonly Machine[] =>
  machines.filter((machine) => channelOf(machine) === name && hasFlashOrder(machine))

// An image as a form offers it, by itself or by the channel that points to it, as the value of one field.

export interface ImageChoice {
  readonly channel: string | null
  /** Empty: no image. */
  readonly ref: string
}

/** `ab12…` or `stable@ab12…`: with the image, so that nobody gets another one than they saw. */
export const renderImageChoice = ({ channel, ref }: ImageChoice): string =>
  channel === null ? ref : `${channel}@${ref}`

export function parseImageChoice(value: string): ImageChoice {
  const at = value.indexOf('@')
  return at === -1
    ? { channel: null, ref: value.trim() }
    : { channel: value.slice(0, at).trim(), ref: value.slice(at + 1).trim() }
}
