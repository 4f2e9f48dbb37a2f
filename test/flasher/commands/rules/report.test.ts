import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { TargetFacts } from '#engine/disk/rules/disk.ts'
import { decideRefusals, renderReasons } from '#engine/flash/rules/flash-plan.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'
import {
  findingsFields,
  hintAgainst,
  renderFindings,
  renderLoss,
  type ReportedFindings,
} from '#flasher/commands/rules/report.ts'

const RAW: ImageFacts = {
  name: 'img/raw.img',
  path: 'img/raw.img',
  url: null,
  format: 'img',
  sizeBytes: 1048576,
  virtual: { kind: 'exact', bytes: 1048576 },
}
const NULL: TargetFacts = { path: '/dev/null', exists: true, device: null }
const DISK: TargetFacts = {
  path: '/dev/sdb',
  exists: true,
  device: {
    node: '/dev/sdb',
    type: 'disk',
    sectorBytes: 512,
    readonly: false,
    vendor: 'ATA',
    model: 'Samsung\u001b[2J SSD',
    tran: 'sata',
    identity: { serial: 'S5GX', wwn: '0x5', sizeBytes: 500_107_862_016, diskseq: 9 },
    zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
    uses: [],
  },
}
const found = (
  image: ImageFacts,
  target: TargetFacts,
  more: Partial<ReportedFindings> = {},
): ReportedFindings => ({
  dryRun: true,
  image,
  target,
  options: { verify: 'data', sha256: null, allowPartition: false, fixGpt: false, grow: false },
  provisioning: { mode: 'none' },
  imageProblem: null,
  refusals: decideRefusals(image, target, { allowPartition: false }),
  ...more,
})

const test = suite('flash report')

test('the document of the deployed clients, ours behind theirs', () => {
  const fields = findingsFields(found(RAW, NULL))
  assert.equal(Object.keys(fields), ['dry_run', 'plan', 'errors', 'ok', 'refusals'])
  assert.is(
    JSON.stringify({ ...fields, refusals: undefined }),
    JSON.stringify({
      dry_run: true,
      plan: {
        image: {
          path: 'img/raw.img',
          url: null,
          format: 'img',
          size_bytes: 1048576,
          virtual_size_bytes: 1048576,
        },
        target: {
          path: '/dev/null',
          exists: true,
          is_block_device: false,
          size_bytes: null,
          mountpoints: [],
        },
        provisioning_mode: 'none',
        notes: [],
        verify: 'data',
        sha256: null,
      },
      errors: ['target is not a block device: /dev/null'],
      ok: false,
    }),
  )
})
test('all reasons at once, the image first', () => {
  const findings = found({ ...RAW, format: null }, NULL, { imageProblem: 'raw.img is empty' })
  assert.is(renderReasons(findings).length, 3)
  assert.match(
    renderReasons(findings).join('\n'),
    /^raw.img is empty\nimage format not .*\ntarget is not/,
  )
  assert.match(hintAgainst(findings) ?? '', /flasher list disks/)
})
const hintFor = (format: ImageFacts['format'], kind: 'exact' | 'at-least') =>
  hintAgainst(found({ ...RAW, format, virtual: { kind, bytes: 600e9 } }, DISK)) ?? ''

test('an image that only seems too large is not answered with a larger disk alone', () => {
  assert.match(hintFor('img.gz', 'at-least'), /^The image may be truncated: compare its checksum/)
  assert.match(hintFor('img.gz', 'exact'), /^Choose a larger disk/)
  assert.match(hintFor('img.zst', 'at-least'), /^Choose a larger disk/)
})
test('a plan that may go ahead has no refusals', () => {
  const fields = findingsFields(found(RAW, DISK))
  assert.equal(Object.keys(fields), ['dry_run', 'plan', 'errors', 'ok'])
  assert.is(fields['ok'], true)
})
test('in words: the very disk and image, and nothing that controls the terminal', () => {
  assert.is(
    renderFindings(found(RAW, DISK)),
    [
      'Image    img/raw.img: img, 1.05 MB',
      `Target   /dev/sdb: ATA Samsung${String.raw`\x1b[2J`} SSD, serial S5GX, 500 GB, sata`,
      'Checks   no checksum available, everything written is read back',
      'Clears   the last MiB of the disk, with remains of an old RAID, ZFS or LVM',
      '',
    ].join('\n'),
  )
  assert.match(
    renderLoss(found(RAW, DISK)),
    /^\nWriting img\/raw\.img to \/dev\/sdb: .*S5GX.*\nEverything on \/dev\/sdb will be lost\.\n$/,
  )
})
test('notes, later steps, digests and refusals have their lines', () => {
  const packed: ImageFacts = { ...RAW, format: 'img.gz', virtual: { kind: 'at-least', bytes: 2e6 } }
  const text = renderFindings(
    found(packed, NULL, {
      provisioning: { mode: 'cijoe', workflow: 'w.yaml', config: null },
      options: {
        verify: 'none',
        sha256: 'ab'.repeat(32),
        allowPartition: false,
        fixGpt: false,
        grow: false,
      },
    }),
  )
  assert.match(text, /^Image .*1\.05 MB, at least 2\.00 MB unpacked$/m)
  assert.match(text, /^Checks {3}SHA-256 abababababab…, nothing is read back$/m)
  assert.match(text, /^Then {5}cijoe workflow w\.yaml$/m)
  assert.match(text, /^Note {5}image virtual size is at least 2000000 bytes/m)
  assert.match(text, /^Refused {2}target is not a block device/m)
})
test.run()
