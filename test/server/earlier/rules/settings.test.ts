/** "Configuration" and "Limits" of the earlier specification: each variable, and what holds without it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { valueOf } from '#kit/config/rules/settings-parser.ts'
import { decideFolders, readConfiguration } from '#server/earlier/assembly/state.ts'
import { parseSettings, SETTINGS } from '#server/earlier/rules/settings.ts'

const test = suite('settings of the earlier line')
const parse = (env: Readonly<Record<string, string>>) =>
  parseSettings({ env, saved: {}, layers: [] })

test('without a variable: 0.0.0.0, 8080, /var/lib/flasher with its images and boot files', async () => {
  const { settings, problems } = parse({})
  assert.equal(problems, [])
  assert.equal([settings.server.host, settings.server.port], ['0.0.0.0', 8080])
  const env = { FLASHER_CONFIG_FILE: '/dev/null' }
  const environment = { env, systemDir: '/nonexistent', isRoot: true }
  const folders = decideFolders(await readConfiguration(environment, { lists: {} }))
  const { stateDir, boot, images, secret, workflows } = folders
  assert.equal(
    { stateDir, boot, images, secret, workflows },
    {
      stateDir: '/var/lib/flasher',
      boot: '/var/lib/flasher/boot',
      images: '/var/lib/flasher/images',
      secret: '/var/lib/flasher/session-secret',
      workflows: '/var/lib/flasher/workflows',
    },
  )
})

const ROWS = [
  ['FLASHER_IMAGE_ROOT', 'paths', 'image_root', '/srv/images'],
  ['FLASHER_STATE_DIR', 'paths', 'state_dir', '/srv/state'],
  ['FLASHER_BOOT_DIR', 'paths', 'boot_dir', '/srv/boot'],
  ['FLASHER_BOOT_RELEASE_REPO', 'boot', 'release_repo', 'acme/live'],
  ['FLASHER_WEB_HOST', 'server', 'host', '192.0.2.9'],
  ['FLASHER_WEB_PORT', 'server', 'port', '8123'],
] as const
for (const [variable, section, key, text] of ROWS) {
  test(`${variable} sets ${section}.${key}`, () => {
    const { settings, problems } = parse({ [variable]: text })
    assert.equal([problems, String(valueOf(settings, section, key))], [[], text])
    assert.ok(key in SETTINGS[section])
  })
}

test('the boot files go with the state folder', async () => {
  const env = { FLASHER_CONFIG_FILE: '/dev/null', FLASHER_STATE_DIR: '/srv/state' }
  const environment = { env, systemDir: '/nonexistent', isRoot: true }
  const config = await readConfiguration(environment, { lists: {} })
  assert.is(decideFolders(config).boot, '/srv/state/boot')
})

test.run()
