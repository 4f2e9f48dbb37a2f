/** Current line: whether a machine may be booted into something else once, and why not. Asked when it is ordered, and again at its boot. */
import { explainUntrusted } from '#engine/bootable/rules/boot-facts.ts'
import { findTemplateObstacle, subjectOf } from '#engine/first-boot/rules/seed.ts'
import { fillPlaceholders } from '#engine/first-boot/rules/template.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import { decideArch } from '#fleet/boot/rules/boot-decision.ts'
import {
  ANSWERS,
  hasAnswers,
  startOf,
  wordsOf,
  type KnownEntry,
  type NamedEntry,
} from '#fleet/once/rules/boot-entry.ts'
import { createOnce, isTicketOf, isWaiting, type OnceOrder } from '#fleet/once/rules/once-order.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { hasUnfinishedFlash, type Machine } from './machine.ts'
import type { Surroundings } from './surroundings.ts'

type Facts = Pick<Surroundings, 'findTemplate'> & {
  readonly tokens: Surroundings['settings']['tokens']
}

/** A sentence or more; null: it may be booted. `known` null: the entry is gone. */
export const findOnceObstacle = (
  machine: Machine,
  name: string,
  known: KnownEntry | null,
  facts: Facts,
): string | null =>
  findBusy(machine) ??
  (known === null
    ? `There is no boot entry ${name}.`
    : (findMisfit(machine, known) ?? findAnswerObstacle(machine, known.entry, facts)))

function findBusy(machine: Machine): string | null {
  if (machine.locked) return 'Locked. Unlock the machine to boot something else.'
  if (isPending(machine.capture)) return 'A capture is ordered. Cancel it, or wait for its end.'
  return hasUnfinishedFlash(machine) ? UNFINISHED : null
}

const UNFINISHED =
  'A flash never finished, so the disk may be half written. Wait for its end, or flash it again.'

function findMisfit(machine: Machine, known: KnownEntry): string | null {
  const { entry, trouble } = known
  if (trouble !== null) return `${entry.name} cannot be booted: ${trouble}.`
  const { arch } = machine
  if (arch !== null && decideArch(arch) !== entry.processor)
    return `${entry.name} is for ${entry.processor}, and this machine has ${arch}.`
  const kind = firmwareOf(machine)
  if (kind !== null && entry.firmware !== 'any' && entry.firmware !== kind)
    return `${entry.name} is for ${WORDS[entry.firmware]}, and this machine starts by ${WORDS[kind]}.`
  return findSecureObstacle(machine, known)
}

/** Null: unknown. */
const firmwareOf = ({ secure_boot, firmware }: Machine): 'bios' | 'uefi' | null =>
  secure_boot === true ? 'uefi' : (firmware?.kind ?? null)

function findSecureObstacle(
  { secure_boot, firmware }: Machine,
  { entry, program, shimKeys }: KnownEntry,
): string | null {
  if ((secure_boot ?? firmware?.secure_boot) !== true) return null
  const why = explainUntrusted(program, firmware, shimKeys)
  return why === null
    ? null
    : `Secure Boot is on, and it does not start ${startOf(entry)?.name}: ${why}. Turn Secure Boot off, or choose another entry.`
}

const WORDS = { bios: 'BIOS', uefi: 'UEFI' } as const

/** For a serial number that is looked up only when the answers are fetched. */
const ANY_SERIAL = 'X'

function findAnswerObstacle(machine: Machine, entry: NamedEntry, { findTemplate, tokens }: Facts) {
  if (!hasAnswers(entry)) return null
  const known = { findTemplate, tokens, features: { firstBoot: true } }
  const obstacle = findTemplateObstacle(machine, known)
  if (obstacle !== null) return obstacle
  const template = machine.first_boot === null ? null : findTemplate(machine.first_boot)
  const subject = subjectOf(machine, ANY_SERIAL)
  const filled = fillPlaceholders(entry.answers, { ...subject, secrets: template?.secrets ?? {} })
  return filled.ok ? null : `The answers of ${entry.name} do not fit: ${filled.refusal}.`
}

export const orderOnce = (machine: Machine, entry: string, now: string): Result<Machine, string> =>
  isWaiting(machine.once)
    ? refuse(`It boots ${machine.once.entry} once already. Cancel that first.`)
    : accept({ ...machine, once: createOnce(entry, now), updated_at: now })

export const cancelOnce = (machine: Machine, now: string): Result<Machine, string> =>
  isWaiting(machine.once)
    ? accept({ ...machine, once: null, updated_at: now })
    : refuse('Nothing else is set to be booted.')

/** What its script found to be for other machines; null: nothing. Only that script has the ticket. */
export const findUnfit = (
  { mac, once }: Machine,
  { unfit = '' }: Readonly<Record<string, string>>,
  verify: Parameters<typeof isTicketOf>[3],
): OnceOrder | null => (isWaiting(once) && isTicketOf(mac, once, unfit, verify) ? once : null)

export const cancelUnfit = (machine: Machine, now: string): Machine => ({
  ...machine,
  once: null,
  updated_at: now,
})

/** Ready for boot loaders. `answers`: the address, with a slash at its end. */
export const fillArguments = (entry: NamedEntry, answers: string): readonly string[] =>
  wordsOf(entry.arguments.replaceAll(ANSWERS, answers))
