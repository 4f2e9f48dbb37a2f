/** What tools are started with is a tool itself: where it is missing, it is named. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { EXIT } from '#flasher/commands/rules/exit-codes.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('a missing shell or lister')

for (const tool of ['bash', 'lsblk']) {
  test(`${tool} is named, with its package and exit code`, async () => {
    // In a namespace of its own, where that file cannot be run.
    const hide = `for at in /bin/${tool} /usr/bin/${tool}; do mount --bind /dev/null "$at" 2>/dev/null; done; exec "$@"`
    const prefix = ['unshare', '--mount', 'sh', '-c', hide, 'sh']
    const { code, stderr } = await runFlasher(['list', 'disks'], { prefix })
    assert.is(code, EXIT['tool-missing'], stderr)
    assert.match(stderr, new RegExp(`${tool} is not installed`))
    assert.match(stderr, /apt-get install/)
  })
}

test.run()
