/** The plan of a build: complete, in order, and the same in every checkout. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { APPLIANCES, NAMED_APPLIANCES } from '#appliance/all.ts'
import { ownerOf } from '#build/cache/key.ts'
import { UsageError } from '#build/arguments.ts'
import { readBuild } from '#build/command.ts'
import { planImages, type Plan } from '#build/plan.ts'
import { renderPlan } from '#build/plan-text.ts'
import type { Step } from '#build/steps/step.ts'

const test = suite('plan')
const facts = { version: '1.2.3', epoch: 1_800_000_000, level: 'dev' } as const
const options = { appliances: APPLIANCES, facts, ipxeServer: null, ipxeSource: null }
const plan = planImages(options)

const only = (name: string): Plan =>
  planImages({ ...options, appliances: APPLIANCES.filter((one) => one.name === name) })
const names = ({ steps }: Plan) => steps.map(({ name }) => name)
const tokensOf = ({ argv }: Step) =>
  argv.flatMap((word) =>
    [...word.matchAll(/(?:^|=)(@[a-z0-9_-]+)/g)].map(([, token = '']) => token),
  )

test('the specified names are handed over', () => {
  const assets = plan.bundles.flatMap(({ files }) => files.map(({ asset }) => asset))
  assert.equal(assets, [
    'flasher-netboot-pc-x86_64-v1.2.3.vmlinuz',
    'flasher-netboot-pc-x86_64-v1.2.3.initrd',
    'flasher-netboot-pc-x86_64-v1.2.3.squashfs',
    'flasher-ipxe-x86_64-v1.2.3.efi',
    'flasher-ipxe-arm64-v1.2.3.efi',
    ...['x86_64', 'arm64'].flatMap((arch) =>
      ['shim.efi', 'grub.efi', 'grub.cfg'].map(
        (part) => `flasher-secureboot-${arch}-v1.2.3.${part}`,
      ),
    ),
    'flasher-usbboot-pc-x86_64-v1.2.3.iso',
  ])
  assert.equal(
    plan.bundles.map(({ checksums }) => checksums),
    [
      'flasher-netboot-pc-x86_64-v1.2.3.sha256',
      'flasher-ipxe-x86_64-v1.2.3.efi.sha256',
      'flasher-ipxe-arm64-v1.2.3.efi.sha256',
      'flasher-secureboot-x86_64-v1.2.3.sha256',
      'flasher-secureboot-arm64-v1.2.3.sha256',
      'flasher-usbboot-pc-x86_64-v1.2.3.iso.sha256',
    ],
  )
})

const everyOptions = { ...options, appliances: [...APPLIANCES, ...NAMED_APPLIANCES] }
const everything = planImages(everyOptions)

test('the specified names of arm64 are handed over', () => {
  const arm = everything.bundles.filter(({ appliance }) => /arm64$|rpi$/.test(appliance))
  assert.equal(
    arm.flatMap(({ files, checksums }) => [...files.map(({ asset }) => asset), checksums]),
    [
      'flasher_1.2.3_arm64.deb',
      'flasher_1.2.3_arm64.deb.sha256',
      'flasher-netboot-pc-arm64-v1.2.3.vmlinuz',
      'flasher-netboot-pc-arm64-v1.2.3.initrd',
      'flasher-netboot-pc-arm64-v1.2.3.squashfs',
      'flasher-netboot-pc-arm64-v1.2.3.sha256',
      'flasher-usbboot-rpi-arm64-v1.2.3.img.gz',
      'flasher-usbboot-rpi-arm64-v1.2.3.img.gz.sha256',
      'flasher-server-rpi-arm64.img.zst',
      'flasher-server-arm64-v1.2.3.vmlinuz',
      'flasher-server-arm64-v1.2.3.initrd',
      'flasher-server-arm64-v1.2.3.squashfs',
      'flasher-server-rpi-arm64.img.zst.sha256',
    ],
  )
})

const inputsOf = (name: string) => everything.steps.find((step) => step.name === name)?.inputs

test('the stick as files is an archive, a page and a folder, of the live system of the ISO', () => {
  const appliances = NAMED_APPLIANCES.filter(({ name }) => name === 'usb-files')
  const { steps, bundles } = planImages({ ...options, appliances })
  assert.equal(
    bundles.flatMap(({ files, checksums, folders = [] }) => [
      ...files.map(({ asset }) => asset),
      checksums,
      ...folders.map(({ name }) => `${name}/`),
    ]),
    ['flasher.zip', 'flasher-stick.html', 'flasher-stick.sha256', 'flasher-stick/'],
  )
  for (const input of ['@base/vmlinuz', '@initrd-media/initrd', '@squashfs/root.squashfs']) {
    assert.ok(inputsOf('usb-files')?.includes(input), input)
    assert.ok(inputsOf('iso')?.includes(input), input)
  }
  assert.not.ok(steps.some(({ name }) => name === 'iso'))
})

test('the server for boards takes nothing of the one for PCs', () => {
  const appliances = NAMED_APPLIANCES.filter(({ name }) => name === 'server-rpi')
  const steps = names(planImages({ ...options, appliances }))
  assert.ok(steps.includes('arm64-server-base'))
  assert.equal(
    steps.filter((name) => /^(server-|base$|node$|app$|arm64-base$)/.test(name)),
    [],
  )
})

test('every step runs after those that it reads from', () => {
  const before = new Set<string>()
  for (const step of everything.steps) {
    for (const input of step.inputs) {
      const owner = ownerOf(input)
      assert.ok(owner === null || before.has(owner), `${step.name} reads ${input}`)
    }
    before.add(step.name)
  }
})

test('what a step reads is among its inputs, or its key would lie', () => {
  for (const step of everything.steps) {
    const inputs = step.inputs.map(ownerOf)
    for (const token of tokensOf(step)) {
      const name = token.slice(1)
      assert.ok(name === step.name || inputs.includes(name), `${step.name}: ${token}`)
    }
  }
})

test('what a step reads is promised by the one that makes it', () => {
  const made = new Set(
    everything.steps.flatMap(({ name, makes }) => makes.map((path) => `@${name}/${path}`)),
  )
  const wanted = everything.bundles.flatMap((bundle) => [
    ...bundle.files.map(({ from }) => from),
    ...bundle.packages.map(({ from }) => from),
    ...bundle.npm,
    ...bundle.programs,
  ])
  const inputs = everything.steps.flatMap((step) =>
    step.inputs.filter((input) => ownerOf(input) !== null),
  )
  for (const path of [...inputs, ...wanted]) {
    const [head = '', top = ''] = path.split('/')
    assert.ok(made.has(`${head}/${top}`), path)
  }
})

test('no step knows where the checkout lies, and none has an absolute path', () => {
  const words = everything.steps.flatMap(({ argv, inputs }) => [...argv, ...inputs])
  assert.equal(
    words.filter((word) => word.startsWith('/') || word.includes(process.cwd())),
    [],
  )
})

test('only what is wanted is made', () => {
  assert.equal(names(only('ipxe-efi')), ['ipxe-packages', 'ipxe-x86_64', 'ipxe-arm64'])
  assert.not.ok(names(only('netboot-pc')).includes('iso'))
  assert.not.ok(names(only('usb-pc')).includes('initrd-netboot'))
})

test('a commit changes the date of the tree, not that of its packages', () => {
  const later = planImages({ ...options, facts: { ...facts, epoch: facts.epoch + 1 } })
  const changed = plan.steps.filter(
    ({ argv }, at) => argv.join(' ') !== later.steps[at]?.argv.join(' '),
  )
  const stays = ['mkosi', 'tools', 'node', 'app', 'base', 'boot-packages', 'ipxe-packages']
  assert.equal(
    changed.filter(({ name }) => stays.includes(name)),
    [],
  )
  assert.ok(changed.some(({ name }) => name === 'tree'))
})

test('neither a commit nor a version changes what our programs are appended to', () => {
  const later = { version: '1.2.4', epoch: facts.epoch + 1, level: facts.level } as const
  for (const name of ['squashfs-rest', 'arm64-squashfs-rest']) {
    const [before, after] = [facts, later].map((of) =>
      planImages({ ...everyOptions, facts: of }).steps.find((step) => step.name === name),
    )
    assert.equal(after, before, name)
  }
})

test('no configuration names a mirror or a registry', () => {
  const files = globSync(['mkosi.conf.d/*', 'overlays/**/*.{conf,sources,list}', 'build/**/*.ts'])
  const hosts = files.filter((file) =>
    /https?:\/\/[a-z0-9.-]*(debian|npmjs|mirror|snapshot)/i.test(readFileSync(file, 'utf8')),
  )
  assert.equal(hosts, [])
})

test('people can read it', () => {
  const text = renderPlan(only('ipxe-efi'))
  assert.match(text, /^ipxe-arm64: iPXE for UEFI on arm64/m)
  assert.match(text, /flasher-ipxe-arm64-v1\.2\.3\.efi {2}← {2}@ipxe-arm64\/ipxe\.efi/)
})

/** Null where the command line is accepted. */
function refuse(...argv: readonly string[]): string | null {
  try {
    readBuild(argv, APPLIANCES, '1.2.3')
    return null
  } catch (error) {
    return error instanceof UsageError ? error.message : String(error)
  }
}

test('a refused command line gets the valid choices and a suggestion', () => {
  const images = '(images: netboot-pc, ipxe-efi, secureboot-efi, usb-pc)'
  const server = '--ipxe-server must be like http://HOST:PORT or https://HOST/PATH'
  const rows = [
    [[], null],
    [['usb-pc', '--level', 'release', '--twice'], null],
    [['--plan', 'usb-pc', '--json', 'ipxe-efi'], null],
    [['usb'], `there is no image usb; did you mean usb-pc? ${images}`],
    [['windows'], `there is no image windows ${images}`],
    [['--jsn'], 'there is no option --jsn; did you mean --json?'],
    [['--ipxe-serve=http://lab'], 'there is no option --ipxe-serve; did you mean --ipxe-server?'],
    [['-q'], 'there is no option -q'],
    [['--level', 'best'], '--level must be dev or release, not best'],
    [['--level', 'relase'], '--level must be dev or release, not relase; did you mean release?'],
    [['--level', '3'], '--level must be dev or release, not 3'],
    [['--level'], '--level must be dev or release'],
    [['--ipxe-server', 'server'], `${server}, not server`],
    [['--ipxe-src', '--plan'], '--ipxe-src requires a folder'],
  ] as const
  for (const [argv, why] of rows) assert.is(refuse(...argv), why, argv.join(' '))
})

test('what is given is read, and what is not has its default', () => {
  const usual = {
    names: ['netboot-pc', 'ipxe-efi', 'secureboot-efi', 'usb-pc'],
    plan: false,
    json: false,
    twice: false,
    level: 'dev',
    ipxeServer: null,
    ipxeSource: null,
    images: [],
  }
  assert.equal(readBuild([], APPLIANCES, '1.2.3'), usual)
  const argv = ['--json', 'usb-pc', '--level=release', '--ipxe-src', '/src/ipxe', 'ipxe-efi']
  const given = { names: ['usb-pc', 'ipxe-efi'], level: 'release', json: true }
  assert.equal(readBuild(argv, APPLIANCES, '1.2.3'), {
    ...usual,
    ...given,
    ipxeSource: '/src/ipxe',
  })
})

const serverOf = (text: string) =>
  readBuild(['--ipxe-server', text], APPLIANCES, '1.2.3')?.ipxeServer

test('a server may have a path, and a slash at its end makes no difference', () => {
  assert.is(serverOf('http://lab:8080'), 'http://lab:8080')
  assert.is(serverOf('http://lab:8080/'), 'http://lab:8080')
  assert.is(serverOf('https://lab/flasher/'), 'https://lab/flasher')
})

test('iPXE that was compiled is not said to be of Debian, and takes none of its packages', () => {
  const appliances = APPLIANCES.filter(({ shape }) => shape === 'ipxe')
  const compiled = planImages({ ...options, appliances, ipxeSource: '/src/ipxe' })
  assert.equal(names(compiled), ['ipxe-x86_64', 'ipxe-arm64'])
  assert.equal(
    compiled.bundles.map(({ packages, programs }) => ({ packages, programs })),
    ['@ipxe-x86_64/programs.json', '@ipxe-arm64/programs.json'].map((list) => ({
      packages: [],
      programs: [list],
    })),
  )
})

test('every file of the checkout that a step reads is there', () => {
  const inputs = everything.steps
    .flatMap((step) => step.inputs)
    .filter((one) => ownerOf(one) === null)
  assert.equal(
    inputs.filter((path) => !existsSync(path)),
    [],
  )
})
test.run()
