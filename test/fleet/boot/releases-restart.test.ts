/** Fetches of releases across restarts of the program. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeBootFolder, partName } from '#test/support/server/boot-folder.ts'
import { startReleaseSite } from '#test/support/http/release-site.ts'

import {
  BY,
  openFetchRecords,
  openReleaseFixture as openFixture,
} from '#test/support/server/release-fixture.ts'

const test = suite('releases after a restart')

test('a fetch that a restart cut off is listed as failed, and can be started again', async () => {
  await using folder = await makeBootFolder()
  const records = await mkdtemp(join(tmpdir(), 'flasher-fetches-'))
  try {
    await using stalled = await startReleaseSite({ stall: partName('1.2.3', 'initrd') })
    const kept = await openFetchRecords(records)
    await using before = await openFixture(folder.dir, { site: stalled.origin }, kept)
    await before.releases.start('v1.2.3', BY)
    while (stalled.held() === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    // The next process starts with what this one has written so far.
    await kept[Symbol.asyncDispose]()
    await using site = await startReleaseSite()
    const found = await openFetchRecords(records)
    await using after = await openFixture(folder.dir, { site: site.origin }, found)
    const [job] = after.releases.jobs()
    assert.equal(
      [job?.tag, job?.status, job?.error],
      ['v1.2.3', 'failed', 'interrupted by a restart of the program'],
    )
    assert.is((await after.fetch('v1.2.3')).status, 'completed')
    const failed = (await after.journal.list({ limit: 100 })).filter(
      ({ kind }) => kind === 'netboot.artifacts.fetch.failed',
    )
    assert.equal(
      failed.map(({ subject_id, actor, summary }) => [subject_id, actor, summary]),
      [
        [
          'v1.2.3',
          'system',
          'Release v1.2.3 could not be fetched: interrupted by a restart of the program',
        ],
      ],
    )
  } finally {
    await rm(records, { recursive: true })
  }
})

test.run()
