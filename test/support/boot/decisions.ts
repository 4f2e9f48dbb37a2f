/** Any boot decision, with any text in it. */
import * as fc from 'fast-check'
import { isBootable, type BootDecision } from '#fleet/boot/rules/boot-decision.ts'
import { parseHost } from '#kit/net/rules/host-header.ts'
import type { setOf } from '../server/machine-fixture.ts'

export const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc
    .array(
      fc.constantFrom(
        ' && ',
        '||',
        '${net0/mac}',
        '\n',
        '\r',
        ';',
        '#',
        ' -n',
        'reboot',
        '"',
        '\\',
      ),
    )
    .map((parts) => parts.join('')),
)
const anyName = fc.oneof(anyText, fc.stringMatching(/^[\w.-]{1,80}$/))
const anySet = fc.record({
  vmlinuz: anyName,
  initrd: anyName,
  squashfs: anyName,
  squashfsSha256: fc.oneof(fc.constant('d'.repeat(64)), fc.constant(null), anyText),
})
const anyHost = fc.oneof(fc.stringMatching(/^[a-z]{1,60}(\.[a-z]{1,60}){0,4}$/), fc.domain())
/** As the setting takes them: up to four, each of at most 80 characters. */
const anyOthers = fc.array(
  fc.stringMatching(/^[a-z]{1,30}(\.[a-z]{1,30})?:80[0-9]{2}$/).map((host) => `http://${host}`),
  { maxLength: 4 },
)
const usable = (set: ReturnType<typeof setOf> | null) =>
  set !== null && isBootable(set) ? set : null
const anyToLiveOrWait: fc.Arbitrary<BootDecision> = fc
  .record({
    host: anyHost,
    others: anyOthers,
    x86_64: anySet,
    arm64: anySet,
    drive: anyText,
    saying: anyText,
  })
  .map(({ host, others, x86_64, arm64, drive, saying }) => {
    const named = parseHost(host)
    const toDisk = { kind: 'to-disk', drive } as const
    if (!named.ok) return toDisk
    const base = `http://${named.value}`
    const toWait = { kind: 'to-wait', base, others, seconds: 20, saying } as const
    const sets = { x86_64: usable(x86_64), arm64: usable(arm64) }
    if (sets.x86_64 === null && sets.arm64 === null) return toWait
    const token = drive.length % 2 === 0 ? null : 'monkruo0.mom5bzbn.QkoN095_O5YnwmCI-Wa0cZtn'
    return {
      kind: 'to-live',
      base,
      others,
      sets,
      token,
      console: 'ttyS1',
      otherwise: token === null ? toWait : toDisk,
    } as const
  })
export const anyDecision: fc.Arbitrary<BootDecision> = fc.oneof(
  { weight: 9, arbitrary: anyToLiveOrWait },
  {
    weight: 1,
    arbitrary: anyText.map((drive): BootDecision => ({ kind: 'to-disk', drive })),
  },
)
