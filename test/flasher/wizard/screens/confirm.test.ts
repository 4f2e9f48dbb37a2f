import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderConfirm, type KnownPlan } from '#flasher/wizard/screens/confirm.ts'
import type { WizardState } from '#flasher/wizard/flow/flow.ts'
import { createQuestion } from '#flasher/wizard/screens/screen.ts'
import { refuse } from '#kit/foundation/result.ts'
import { createInk } from '#kit/terminal/text/terminal-style.ts'
import { UNTOUCHED } from '#kit/terminal/prompt/menu.ts'

const test = suite('wizard confirm')

const identity = {
  serial: 'S5GXNX0R123456',
  wwn: null,
  sizeBytes: 1_000_204_886_016,
  diskseq: null,
}
const WORDS = 'Samsung SSD 980 PRO 1TB, serial S5GXNX0R123456, 1.00 TB, nvme'
const state: WizardState = {
  screen: 'confirm',
  skipsCatalog: false,
  source: 'http://lab:8080/catalog.toml',
  image: {
    name: 'debian-13-genericcloud-amd64-daily.img.zst',
    location: 'http://lab:8080/images/debian.img.zst',
    format: 'img.zst',
    sizeBytes: 363_000_000,
    sha256: null,
    ref: null,
  },
  disks: [{ path: '/dev/nvme0n1', identity, words: WORDS }],
  template: null,
  end: null,
  ends: [],
  bootEntry: null,
  notice: null,
  capture: null,
}
const drawing = {
  setting: {
    version: '0.1.0',
    identity: { mac: '52:54:00:12:34:56', server: null, address: null },
    imageRoot: '/var/lib/flasher/images',
    reboots: true,
  },
  ink: createInk({ colour: false }),
  unicode: false,
  tty: true,
}
const PARTS = Array.from({ length: 6 }, (_, at) => ({
  device: `/dev/nvme0n1p${at + 1}`,
  sizeBytes: 67_108_864,
  fstype: 'ext4',
  label: `data-${at + 1}`,
  partlabel: null,
}))
const known: KnownPlan = {
  plan: null,
  found: [{ parts: PARTS }],
  reasons: [],
  template: null,
  isTemplateWritten: true,
}
const KEYS = '[y] ERASE AND FLASH  [b] back  [q] quit'

function show(
  columns: number,
  rows: number,
  of = known,
  disks = [{ path: '/dev/nvme0n1', identity, words: WORDS }],
) {
  const asked = { ...state, disks }
  const keys = [
    { key: 'y', words: [], does: 'ERASE AND FLASH' },
    { key: 'b', words: [], does: 'back' },
    { key: 'q', words: [], does: 'quit' },
  ]
  const view = {
    menu: { prompt: 'Flash', columns: [], rows: [], keys, enter: 'b' },
    intro: (size: { readonly columns: number }, room: number) =>
      renderConfirm(asked, of, drawing, { columns: size.columns, room }),
  }
  const { lines } = createQuestion(asked, view, drawing).frame(UNTOUCHED, { columns, rows })
  assert.ok(lines.length <= rows, `${lines.length} lines in ${rows}`)
  for (const line of lines) assert.ok(line.length < columns, line)
  return lines
}

test('whatever the size: the disk, what is lost, and the prompt', () => {
  for (const columns of [40, 60, 80, 132]) {
    for (const rows of [12, 13, 16, 20, 24, 25, 43]) {
      const lines = show(columns, rows)
      const text = lines.join(' ').replaceAll(/[\s|]+/g, ' ')
      for (const fact of ['/dev/nvme0n1', 'Samsung SSD 980 PRO 1TB', 'S5GXNX0R123456', '1.00 TB']) {
        assert.ok(text.includes(fact), `${fact} at ${columns}x${rows}:\n${lines.join('\n')}`)
      }
      assert.match(text, /(Everything on \/dev\/nvme0n1|All of it) will be lost: /)
      assert.match(text, /and \d more|data-6|6 partitions/)
      assert.is(lines.at(-2), '> Flash: ')
      assert.is(lines.at(-1), columns === 40 ? KEYS : `${KEYS}  [?] help`)
    }
  }
})

test('on 40x12', () => {
  assert.equal(show(40, 12), [
    'flasher 0.1.0  standalone',
    'Flash 4 of 5',
    'debian-13-g..ly.img.zst -> /dev/nvme0n1',
    'Samsung SSD 980 PRO 1TB, serial',
    'S5GXNX0R123456, 1.00 TB, nvme',
    '! All of it will be lost:',
    '  /dev/nvme0n1p1  67.1 MB  ext4  data-1',
    '  and 5 more',
    '',
    '',
    '> Flash: ',
    KEYS,
  ])
})

test('the smallest screen names the image and the path', () => {
  const text = show(30, 8).join('\n')
  assert.match(text, /debian.*-> \/dev\/nvme0n1/)
  assert.match(text, /All of it will be lost/)
})

test('a disk with a long name leaves the image out, and one that goes on for ever ends', () => {
  const serial = 'X'.repeat(120)
  const disk = { path: '/dev/nvme0n1', identity }
  const lines = show(40, 12, known, [{ ...disk, words: `Model, serial ${serial}, 1.00 TB` }])
  assert.ok(lines.join('').includes(serial), lines.join('\n'))
  assert.ok(lines.includes('! All of it will be lost:'), lines.join('\n'))
  show(40, 12, known, [{ ...disk, words: '日本'.repeat(400) }])
})

test('why it is rejected comes before frames', () => {
  const reasons = Array.from({ length: 4 }, (_, at) => `reason ${at + 1} against it`)
  for (const rows of [12, 16, 24, 43]) {
    const lines = show(80, rows, { ...known, reasons })
    assert.ok(lines.some((line) => line.includes('reason 4')) || rows === 16, lines.join('\n'))
    assert.is(
      lines.some((line) => line.startsWith('+- Disk')),
      rows > 20,
    )
  }
  assert.ok(show(40, 12, { ...known, reasons: null }).includes('- checking ...'))
})

const serialOf = (at: number) => `S5GX-${String(at).padStart(4, '0')}`
const pathOf = (at: number) => `/dev/sd${String.fromCharCode(97 + at)}`
const several = (count: number, of = known) => ({
  disks: Array.from({ length: count }, (_, at) => ({
    path: pathOf(at),
    identity: { ...identity, serial: serialOf(at) },
    words: `ATA Samsung SSD 980, serial ${serialOf(at)}, 500 GB`,
  })),
  known: { ...of, found: Array.from({ length: count }, () => ({ parts: PARTS.slice(0, 2) })) },
})

test('several disks: each by its name and what tells it apart, whatever the size', () => {
  for (const [columns, rows] of [
    [80, 24],
    [80, 25],
    [132, 43],
    [200, 50],
    [40, 12],
  ] as const) {
    for (const count of [2, 3, 4, 8, 11]) {
      const { disks, known: of } = several(count)
      // A small screen has room for a few.
      if (columns === 40 && count > 4) continue
      const lines = show(columns, rows, of, disks)
      const text = lines.join('\n')
      for (let at = 0; at < count; at += 1) {
        assert.ok(text.includes(pathOf(at)), text)
        assert.ok(text.replaceAll(/\n */g, ' ').includes(serialOf(at)), text)
      }
      assert.match(text.replaceAll(/\s+/g, ' '), new RegExp(`these ${count} disks will be lost:`))
      assert.match(text, /ERASE AND FLASH/)
      if (columns >= 80) assert.is(text.match(/500 GB/g)?.length, count)
      if (columns === 200) assert.is(text.match(/data-1, data-2/g)?.length, count)
    }
  }
})

test('several disks on 80x25', () => {
  const { disks, known: of } = several(3)
  assert.equal(show(80, 25, of, disks).slice(-11), [
    '! Everything on these 3 disks will be lost:',
    ...disks.flatMap(({ path }, at) => [
      `  ${path}: ATA Samsung SSD 980, serial ${serialOf(at)}, 500 GB`,
      '    data-1, data-2',
    ]),
    '',
    '',
    '> Flash: ',
    `${KEYS}  [?] help`,
  ])
})

test('why several disks are rejected stands above them', () => {
  const { disks, known: of } = several(2, { ...known, reasons: ['reason 1', 'reason 2'] })
  const text = show(80, 25, of, disks).join('\n')
  assert.match(text, /x Rejected:\n +reason 1\n +reason 2\n +\/dev\/sda: [^]*\/dev\/sdb: /)
})

test('what is written for the first boot is said before what is lost, whatever the size', () => {
  const template = {
    kind: 'template',
    name: 'web',
    fetch: async () => refuse('not asked for'),
  } as const
  const reason = 'No first-boot template: the machine has no name.'
  for (const [columns, rows] of [
    [40, 12],
    [80, 25],
  ] as const) {
    const textOf = (of: Partial<KnownPlan>) =>
      show(columns, rows, { ...known, ...of })
        .join(' ')
        .replaceAll(/[\s|]+/g, ' ')
    assert.match(textOf({ template }), 'The first-boot template web is written with the image.')
    assert.match(
      textOf({ template, isTemplateWritten: false }),
      'The first-boot template web is not written.',
    )
    const without = textOf({ template: { kind: 'unavailable', reason } })
    assert.match(without, reason)
    assert.match(without, /will be lost: .*(and 5 more|6 partitions|data-1)/)
  }
})

test.run()
