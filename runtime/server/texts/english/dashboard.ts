/** The dashboard. */
export const DASHBOARD = {
  numbers: {
    machines: 'Machines',
    running: 'Running',
    failed: 'Failed in 24 hours',
    notBooted: 'Failed to boot in 24 hours',
    attention: 'Need attention',
    unassigned: 'Discovered',
    images: 'Images',
    more: '{count} more in 24 hours',
    doneToday: { one: '1 done in 24 hours', other: '{count} done in 24 hours' },
    same: 'as on the day before',
    moreThanBefore: '{count} more than the day before',
    fewerThanBefore: '{count} fewer than the day before',
  },
  trends: {
    title: 'Trends of the last 14 days',
    success: 'Flashes that succeeded',
    duration: 'How long they took',
    byImage: 'By image',
    byModel: 'By model of disk',
    /** `{time}`: the median of those that succeeded. */
    day: '{date}: {done} of {all} succeeded, median {time}',
    dayWithout: '{date}: {done} of {all} succeeded',
    today: 'today',
    successSummary: '{done} of {all} succeeded',
    durationSummary: 'medians of each day, at most {time}',
    rate: '{done} of {all}',
    table: {
      title: 'As a table',
      day: 'Day',
      succeeded: 'Succeeded',
      failed: 'Failed',
      median: 'Median duration',
    },
  },
  median: {
    title: 'Where the time goes',
    text: { one: 'The last flash.', other: 'Medians of the last {count} flashes.' },
  },
  running: 'Running now',
  attention: {
    title: 'Needs attention',
    all: 'All {count}',
    more: { one: 'and {count} more', other: 'and {count} more' },
    none: 'Nothing needs attention.',
    neverSeen: 'never seen',
    run: 'Show the run',
    configure: 'Configure',
    open: 'Open',
  },
  events: { title: 'Latest events', all: 'All events' },
  empty: {
    title: 'No machines yet',
    text: 'Boot one from the network and it appears here.',
    action: 'Set up DHCP',
  },
  setup: {
    done: 'Ready to boot machines',
    title: 'Setup: {done} of {total} done',
    ready: { one: '1 ready', other: '{count} ready' },
    dismiss: 'Dismiss',
    dismissAll: 'Dismiss the setup',
    showAgain: 'Show the dismissed setup again',
    states: {
      ready: 'ready',
      attention: 'needs attention',
      missing: 'to do',
      unknown: 'not seen yet',
    },
    rows: {
      catalog: {
        title: 'Images',
        why: 'Machines are flashed with images from the cache.',
        actions: {
          add: 'Add an image',
          connect: 'Connect a cache',
          check: 'Check the cache',
        },
        texts: {
          unset: 'No cache service is configured, so there are no images.',
          none: 'There are no images yet.',
          unavailable: 'The cache service is unavailable.',
          ready: { one: '1 image in the catalog.', other: '{count} images in the catalog.' },
          stale: {
            one: '1 image known, but the cache service is unavailable.',
            other: '{count} images known, but the cache service is unavailable.',
          },
        },
      },
      netboot: {
        title: 'Live system',
        why: 'Machines boot it from the network to be flashed. Without it they can only boot their own disks.',
        action: 'Install a live system',
        texts: {
          none: 'No live system is installed.',
          /** One live system for each architecture; `{first}` and `{second}` are such as `system`. */
          single: 'Machines boot {first}.',
          both: 'Machines boot {first} and {second}.',
          system: '{version} ({arch})',
          unnamed: 'an uploaded version',
        },
      },
      dhcp: {
        title: 'DHCP',
        why: 'Your DHCP server must tell machines to boot from this server.',
        action: 'Set up DHCP',
        texts: {
          ready: 'Machines find this server.',
          unknown: 'No machine has booted from this server yet.',
        },
      },
      /** What is true of it comes from the check (`netboot.tftp.findings`). */
      tftp: {
        title: 'TFTP daemon',
        why: 'BIOS machines and most UEFI firmware load their first file by TFTP. UEFI HTTP Boot needs none.',
        action: 'Set up TFTP',
      },
      disk: {
        title: 'Disk space',
        why: 'The server stops accepting changes when its disk is full.',
        action: 'Check storage',
        texts: {
          unknown: 'Free space unknown.',
          low: "Only {size} free. Free up space on the server's disk.",
          ready: '{size} free.',
        },
      },
    },
  },
} as const
