/** Groups of events that a rule selects by one name, and what people call them. */
import { isAlarm } from '../../state/rules/event-table.ts'

interface EventGroup {
  /** What has happened, for one event of the group. */
  readonly title: string
  has(kind: string): boolean
}

const oneOf = (...kinds: readonly string[]) => {
  const known = new Set(kinds)
  return (kind: string): boolean => known.has(kind)
}

/** A group that is added stands here, and nowhere else. */
export const EVENT_GROUPS = {
  'flash-failed': { title: 'Flash failed', has: oneOf('machine.flash_failed') },
  flashed: { title: 'Flashed', has: oneOf('machine.flashed') },
  'boot-failed': {
    title: 'Failed to boot',
    has: oneOf('machine.boot_failed', 'machine.boot_not_seen'),
  },
  booted: { title: 'Booted', has: oneOf('machine.booted', 'machine.boot_seen') },
  'loop-suspected': {
    title: 'Boot loop or wrong disk suspected',
    has: oneOf('netboot.loop.suspected', 'netboot.plan.doubted'),
  },
  'batch-ended': { title: 'Batch ended', has: oneOf('batch.ended') },
  captured: {
    title: 'Captured',
    has: oneOf('machine.captured'),
  },
  'capture-failed': { title: 'Capture failed', has: oneOf('machine.capture_failed') },
  discovered: { title: 'Discovered', has: oneOf('machine.discovered') },
  'power-failed': { title: 'Power failed', has: oneOf('machine.power.failed') },
  'job-failed': {
    title: 'Backup or release failed',
    has: (kind) => /^(?:backup|netboot|images|catalog)\..*failed$/.test(kind),
  },
  'login-failed': {
    title: 'Login failed',
    has: oneOf('auth.login.failed', 'auth.password.failed', 'auth.token.failed'),
  },
  'server-fault': {
    title: 'Fault of the server',
    has: (kind) => kind === 'notification.failed' || (kind.startsWith('system.') && isAlarm(kind)),
  },
  'needs-attention': { title: 'Needs attention', has: isAlarm },
} as const satisfies Readonly<Record<string, EventGroup>>

export type EventGroupName = keyof typeof EVENT_GROUPS

const isName = (text: string): text is EventGroupName => Object.hasOwn(EVENT_GROUPS, text)

/** The names of the groups, in the order of their table. */
export const EVENT_GROUP_NAMES: readonly EventGroupName[] = Object.keys(EVENT_GROUPS).filter(isName)

/** What people call an event of this kind: by the first group that has it, else by its own name. */
export function nameKind(kind: string): string {
  const name = EVENT_GROUP_NAMES.find(
    (each) => each !== 'needs-attention' && EVENT_GROUPS[each].has(kind),
  )
  return name === undefined ? kind : EVENT_GROUPS[name].title
}
