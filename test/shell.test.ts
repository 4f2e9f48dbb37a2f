/** The shell scripts that we ship or that CI runs are free of ShellCheck's warnings, where it is installed. */
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, statSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'

const FOLDERS = ['.ci/**', 'overlays/**', 'mkosi.conf.d/**']
/** By the first line; parts that others read have none, and say so by their names. */
const isScript = (path: string) =>
  path.endsWith('.sh') || /^#!.*\b(ba|da|a)?sh\b/.test(readFileSync(path, 'utf8').slice(0, 80))

const scripts = globSync(FOLDERS)
  .filter((path) => statSync(path).isFile() && isScript(path))
  .toSorted()

const test = suite('shell scripts')
const isInstalled = spawnSync('shellcheck', ['--version']).status === 0

test('those without a suffix are found too', () => {
  for (const path of ['.ci/run', 'overlays/initrd/init', 'overlays/initrd/lib/flasher/root.sh']) {
    assert.ok(scripts.includes(path), path)
  }
})

const whereInstalled = isInstalled ? test : test.skip
whereInstalled('no warnings', () => {
  // Each by itself, as an editor would: what one of them sets is no excuse for another.
  for (const path of scripts) {
    const { stdout, stderr } = spawnSync('shellcheck', ['-S', 'warning', path], {
      encoding: 'utf8',
    })
    assert.is(`${stdout}${stderr}`, '', path)
  }
})

test.run()
