/** Names that files of the live system and programs must spell alike, where no import keeps them together. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { IMAGES_PARTITION, KERNEL_ARGS, LIVE_PATHS } from '#appliance/contract.ts'
import { chooseImagesPartition } from '#engine/disk/rules/images-partition.ts'

const test = suite('names of the stick')
const read = (path: string) => readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
const UNIT = 'overlays/usb/usr/lib/systemd/system/flasher-grow.service'
const RULES = 'overlays/usb/usr/lib/udev/rules.d/90-flasher-images.rules'
const ROOT = 'overlays/initrd/lib/flasher/root.sh'

test('an exFAT label fits, and Windows shows it as it is', () => {
  assert.match(IMAGES_PARTITION.label, /^[A-Z_]{1,11}$/)
})

test('the unit mounts once, where the wizard looks', () => {
  const unit = read(UNIT)
  assert.match(unit, `ConditionPathIsMountPoint=!${LIVE_PATHS.images}\n`)
  assert.match(unit, `EnvironmentFile=-${LIVE_PATHS.bootFacts}\n`)
  assert.match(unit, `ConditionKernelCommandLine=!${KERNEL_ARGS.mac}\n`)
  assert.match(read('overlays/usb/usr/lib/flasher/live/grow'), `home=${LIVE_PATHS.home}\n`)
})

test('a slow machine has the time that it takes', () => {
  // 60 s were too few where a busy host emulates the processor.
  assert.ok(Number(/^TimeoutStartSec=(\d+)$/m.exec(read(UNIT))?.[1]) >= 300)
})

test('the boot system starts it by the name of the partition', () => {
  assert.match(read(ROOT), `PARTNAME=${IMAGES_PARTITION.name} `)
  assert.match(read(ROOT), 'flasher-wizard.service.wants')
})

test('udev starts it for every label that is looked for, and for no other', () => {
  const rules = read(RULES)
  assert.match(rules, `ENV{ID_PART_ENTRY_NAME}=="${IMAGES_PARTITION.name}"`)
  const labels = /ENV\{ID_FS_LABEL\}=="([^"]+)"/.exec(rules)?.[1]?.split('|') ?? []
  assert.is(labels.length, 3)
  const medium = { disk: null, partition: null, hasImages: false }
  const disks = [{ node: '/dev/sdb', isFixed: false }]
  for (const label of labels) {
    const labelled = new Map([[label, '/dev/sdb']])
    const place = chooseImagesPartition({ medium, parts: [], disks, labels: labelled })
    assert.is(place?.node, '/dev/sdb', label)
  }
})

test.run()
