/** A part of a disk as a block device: a failure to begin is an error like any other. */
import { spawn } from 'node:child_process'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openLoopPart } from '../../../runtime/services/disk/loop-part.ts'
import { createShell } from '../../../runtime/services/host/shell.ts'
import { faultOf } from '../../support/collect.ts'

const test = suite('parts of a disk')

test('a program that cannot be started is a Fault, and ends nothing else', async () => {
  const shell = {
    ...createShell({ env: process.env }),
    pipe: () => spawn('/nowhere/setsid', { stdio: ['pipe', 'pipe', 'pipe'] }),
  }
  const disk = { node: '/dev/null', fd: 0, sectorBytes: 512 }
  const fault = await faultOf(() => openLoopPart(shell, disk, { offset: 0, bytes: 512 }))
  assert.is(fault.code, 'tool-failed')
  assert.match(fault.message, /^no loop device: .*ENOENT/)
})

test.run()
