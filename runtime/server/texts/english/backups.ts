/** The backups page. */
export const BACKUPS = {
  start: 'Back up now',
  running: 'Running',
  activity: 'Activity',
  empty: {
    title: 'No backups yet',
    text: 'A backup holds the machines with their images, disks and labels, the settings and the events. Restore it here or with flasher-web restore.',
  },
  errors: {
    notRunning: 'That backup is not running.',
    unknown: 'There is no such backup.',
    confirm: 'Type {time} to continue.',
  },
  done: {
    restored:
      'The backup of {time} was restored. The previous state was kept beside the database as {suffix}.',
    disarmed: {
      one: 'This machine is not flashed or captured until you order it again on its page:',
      other:
        'These {count} machines are not flashed or captured until you order it again on their pages:',
    },
    removed: 'The backup of {time} was removed.',
  },
  jobs: {
    triggers: { manual: 'manual', scheduled: 'scheduled' },
    state: '{trigger}, {state}',
    waiting: 'waiting',
    copying: 'copying',
    restoring: 'Restoring the backup of {time}',
    checking: 'checking and copying',
  },
  list: {
    caption: 'Backups that can be restored, newest first',
    backup: 'Backup',
    created: 'Created',
    machines: 'Machines',
    size: 'Size',
    release: 'Release',
    hardware: 'hardware only',
    download: 'Download',
    restore: 'Restore…',
    remove: 'Remove…',
  },
  schedule: {
    title: 'Schedule',
    texts: {
      daily: 'A backup is made every day.',
      weekly: 'A backup is made every week.',
      manual: 'Backups are only made with the button above.',
    },
    kept: {
      one: 'The newest backup is kept.',
      other: 'The newest {count} backups are kept.',
    },
    change: 'Change schedule',
  },
  restore: {
    title: 'Restore the backup of {time}',
    hardware: 'hardware only, {size}',
    content: {
      one: '1 machine, release {release}, {size}',
      other: '{count} machines, release {release}, {size}',
    },
    replaces: 'replaces',
    current: 'The current state',
    present: {
      one: '1 machine, settings and events',
      other: '{count} machines, settings and events',
    },
    warning:
      'This backup holds hardware only: machines return without image or disk, and list their disks on network boot.',
    consequence:
      'This replaces everything. The current database is kept on the server as a {suffix} file.',
    disarms: {
      one: 'A restore arms no machine. This one loses its order: it keeps its image and disk and what it does on network boot, and is not flashed or captured until you order it again:',
      other:
        'A restore arms no machine. These {count} lose their orders: they keep their images and disks and what they do on network boot, and are not flashed or captured until you order it again:',
    },
    disarmsNone: 'No machine loses an order to be flashed or captured.',
    changes: {
      title: {
        one: 'What changes: 1 machine',
        other: 'What changes: {count} machines',
      },
      none: 'Image, disk, mode, name and labels of all machines stay as they are.',
      counts: {
        goes: { one: '{count} is forgotten', other: '{count} are forgotten' },
        returns: { one: '{count} comes back', other: '{count} come back' },
        changes: { one: '{count} becomes what it was', other: '{count} become what they were' },
        unchanged: { one: '{count} stays as it is', other: '{count} stay as they are' },
      },
      rest: { one: 'One more machine', other: '{count} more machines' },
      kinds: {
        goes: 'is not in the backup: it is forgotten until it boots from the network again',
        returns: 'was removed since: it comes back',
        changes: 'becomes what it was:',
      },
      more: 'and {count} more',
      settings: {
        one: 'This setting gets the value that it had, or none: {names}.',
        other: 'These {count} settings get the values that they had, or none: {names}.',
      },
    },
    confirm: 'Type {time} to replace the current state:',
    button: 'Restore this backup',
  },
  removal: {
    title: 'Remove the backup of {time}',
    question: 'Remove the backup of {time}?',
    hardware:
      'It holds hardware only, {size}. It cannot be restored after this; the server itself stays as it is.',
    content: {
      one: 'It holds 1 machine, {size}. It cannot be restored after this; the server itself stays as it is.',
      other:
        'It holds {count} machines, {size}. It cannot be restored after this; the server itself stays as it is.',
    },
    button: 'Remove backup',
  },
} as const
