/** Steps of the root, the initrds and iPXE: what they read, what they promise. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { initrdFilesSteps, initrdStep } from '#build/steps/initrd.ts'
import { ipxeStep } from '#build/steps/ipxe.ts'
import { appendStep, squashfsStep } from '#build/steps/squashfs.ts'

const test = suite('steps')
const facts = { version: '1.2.3', epoch: 1_760_000_000, level: 'release' } as const

const INITRD = { name: 'initrd-netboot', kind: 'netboot', facts } as const

test('an initrd depends on drivers and scripts, and on the one root that it takes', () => {
  const step = initrdStep({
    ...INITRD,
    squashfs: '@squashfs/root.squashfs',
    squashfsName: 'a.squashfs',
  })
  assert.is(step.argv.slice(0, 2).join(' '), 'node build/programs/initrd.ts')
  assert.match(step.argv.join(' '), '--squashfs @squashfs/root.squashfs --name a.squashfs')
  for (const input of ['@netboot-zst/files.cpio.zst', '@squashfs/root.squashfs']) {
    assert.ok(step.inputs.includes(input), input)
  }
  assert.equal(step.makes, ['initrd'])
})

test('its drivers and scripts are compressed again only where they have changed', () => {
  const options = { ...INITRD, arch: 'x86_64', tree: '@tree/live' } as const
  const [files, compressed] = initrdFilesSteps(options)
  for (const input of ['overlays/initrd', '@tree/live']) {
    assert.ok(files?.inputs.includes(input), input)
  }
  assert.equal(compressed?.inputs, ['@netboot-files/files.cpio'])
  assert.match(compressed?.argv.join(' ') ?? '', ' -19 @netboot-files/files.cpio ')
  // Neither a commit nor a version changes a byte of them.
  const later = { version: '1.2.4', epoch: facts.epoch + 1, level: 'release' } as const
  assert.equal(initrdFilesSteps({ ...options, facts: later }), [files, compressed])
})

test('our programs are appended to a copy of the compressed root', () => {
  const base = '@squashfs-rest/root.squashfs'
  const step = appendStep({ facts, name: 'squashfs', says: 'root', base, folder: '@tree/opt' })
  assert.equal(step.inputs, [base, '@tree/opt'])
  // The cached file stays as it is: mksquashfs is given the copy, `$2`.
  assert.is(step.argv[2], 'cp "$0" "$2" && exec mksquashfs "$@"')
  assert.equal(step.argv.slice(3, 6), [base, '@tree/opt', '@squashfs/root.squashfs'])
  assert.match(step.argv.join(' '), ` -all-time ${facts.epoch} -mkfs-time ${facts.epoch}`)
})

test('a squashfs has the level of the build, and no kernel', () => {
  const options = { name: 'squashfs', says: 'root', tree: '@tree/live', epoch: facts.epoch }
  const [dev, release] = (['dev', 'release'] as const).map((level) =>
    squashfsStep({ ...options, level }).argv.join(' '),
  )
  assert.match(dev ?? '', '-Xcompression-level 14 ')
  assert.match(release ?? '', '-Xcompression-level 16 ')
  assert.match(release ?? '', ' -e usr/lib/modules/*/vmlinuz boot/*')
})

const IPXE = { name: 'ipxe', arch: 'arm64', binary: '@ipxe-packages/root/x.efi', facts } as const

test('iPXE is the packaged one with our script, or compiled where sources were given', () => {
  const packaged = ipxeStep({ ...IPXE, server: null, source: null })
  assert.match(packaged.argv.join(' '), 'pe-section.ts --program @ipxe-packages/root/x.efi')
  assert.not.match(packaged.argv.join(' '), '--server')
  const compiled = ipxeStep({ ...IPXE, server: 'http://a:8080', source: '/src/ipxe' })
  assert.match(compiled.argv.join(' '), 'ipxe-source.ts --source /src/ipxe --arch arm64')
  assert.match(compiled.argv.join(' '), '--server http://a:8080')
  assert.ok(compiled.inputs.includes('/src/ipxe'))
})

test.run()
