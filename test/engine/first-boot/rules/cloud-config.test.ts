/** Which configurations of images have cloud-init read a seed, which need a file of ours, and which cannot be helped. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type CloudConfig,
  CONFIG_FOLDER,
  decideOwnFile,
} from '#engine/first-boot/rules/seed-location.ts'

const test = suite('the configuration of cloud-init')

type Texts = Readonly<Record<string, string>>

function decide(texts: Texts, options: Partial<CloudConfig> = {}) {
  const below = Object.entries(texts).map(([name, text]) => ({
    path: name === 'cloud.cfg' ? 'etc/cloud/cloud.cfg' : `${CONFIG_FOLDER}/${name}`,
    text,
  }))
  return decideOwnFile({ files: below, identify: '', hasTrustMark: false, ...options })
}

const ownOf = (texts: Texts) => {
  const decided = decide(texts)
  return decided.ok ? decided.value : decided.refusal
}

test('reads a seed as it is', () => {
  const plain: readonly Texts[] = [
    {},
    { 'cloud.cfg': 'users: [default]\n# datasource_list: [Ec2]\n' },
    { '90_dpkg.cfg': '# by dpkg\ndatasource_list: [ NoCloud, ConfigDrive, None ]\n' },
    { 'a.cfg': 'datasource_list: [ Ec2 ]', 'b.cfg': 'datasource_list: [NoCloud]' },
    { 'a.cfg': 'datasource:\n  Ec2:\n    # seedfrom: x\n    timeout: 5\n' },
  ]
  for (const texts of plain) assert.is(ownOf(texts), null, JSON.stringify(texts))
})

test('needs a file of ours, behind all others', () => {
  const hidden: readonly (readonly [Texts, RegExp, string])[] = [
    [{ '99-installer.cfg': 'datasource_list: [None]' }, /datasource_list in .*installer/, 'zzzz'],
    [{ '90_dpkg.cfg': 'datasource_list: [ Ec2, None ]' }, /datasource_list/, '99'],
    [{ '10.cfg': 'datasource_list:\n - NoCloud\n' }, /datasource_list/, '99'],
    [{ '10.cfg': '{"datasource_list": ["NoCloud"]}' }, /datasource_list/, '99'],
    [{ '10.cfg': 'datasource_list: [ConfigDrive, NoCloud]' }, /datasource_list/, '99'],
    [{ '99_pi.cfg': 'datasource: {NoCloud: {seedfrom: /boot}}' }, /seedfrom in .*99_pi/, 'zzzz'],
    [{ 'cloud.cfg': 'datasource:\n  NoCloud:\n    fs_label: system-boot\n' }, /fs_label/, '99'],
    [{ 'cloud.cfg': 'manual_cache_clean: true\n' }, /manual_cache_clean/, '99'],
  ]
  for (const [texts, note, name] of hidden) {
    const own = ownOf(texts)
    assert.ok(own !== null && typeof own !== 'string', JSON.stringify(texts))
    assert.match(own.note, note)
    assert.is(own.name, `${name}-flasher.cfg`)
    // An image that was captured after that has the file, and gets it once more.
    assert.equal(ownOf({ ...texts, [own.name]: own.content }), own)
  }
})

test('is refused where a file of ours would not help', () => {
  const seed = 'datasource:\n  NoCloud:\n    user-data: x\n    meta-data: {a: b}\n'
  const refusals = [
    decide({ 'a.cfg': seed }),
    decide({ 'a.cfg': 'datasource_list: [None]\nmerge_how: dict(replace)\n' }),
    decide({}, { identify: 'datasource: Ec2\n' }),
    decide({}, { identify: '# by us\npolicy: disabled\n' }),
    decide({}, { hasTrustMark: true }),
  ].map((decided) => (decided.ok ? '' : decided.refusal))
  const words = [
    /already has user-data/,
    /datasource_list/,
    /source Ec2/,
    /switches/,
    /earlier boot/,
  ]
  for (const [at, refusal] of refusals.entries()) assert.match(refusal, words[at] ?? /^$/)
  assert.ok(decide({}, { identify: 'policy: search,found=all\ndatasource: NoCloud\n' }).ok)
})

test.run()
