/** Generated disks, settings, and wishes of an operator, from a few values that meet often. */
import * as fc from 'fast-check'
import { BOOT_MODES } from '#server/current/machines/rules/boot-mode.ts'
import { diskOf, OTHER_REF, REF } from './machine-fixture.ts'

export const anyDisk = fc
  .record({
    serial: fc.constantFrom('S1', 'S2', null),
    wwn: fc.constantFrom('0x1', null),
    readonly: fc.boolean(),
    size_bytes: fc.constantFrom(10, 10_000, null),
  })
  .map(({ serial, ...more }) => diskOf(serial, more))

export const anyBody = fc.record({
  boot_mode: fc.constantFrom(...BOOT_MODES, 'flasher-flash-once', 'flasher-flash-always'),
  bty_image_ref: fc.constantFrom(REF, REF, OTHER_REF, null),
  target_disk_serial: fc.constantFrom('S1', 'S1', 'S2', 'wwn:0x1', null),
})

export const anySettings = fc.record({
  loop_limit: fc.integer({ min: 1, max: 5 }),
  inventory_refresh: fc.constantFrom(0, 3600, 86_400, Infinity),
  boot_disk_once_after_flash: fc.boolean(),
  tokens: fc.constant('off' as const),
})
