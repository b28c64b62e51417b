"""Settings of RocketMQ's that an existing broker.conf may hold and that change nothing here: name to reason.

Only what tunes the Java broker's threads, locks, mappings or features that are off by default. What would change
which files are written, or what an acknowledgement means, is not here: such a name stays an error.
"""

_REASONS = {
    "one event loop takes the place of locks and thread pools": (
        "spinLockCollisionRetreatOptimalDegree useABSLock topicQueueLockNum putMessageTimeout "
        "maxAsyncPutMessageRequests batchDispatchRequestThreadPoolNums enableBuildConsumeQueueConcurrently "
        "dispatchCqThreads dispatchCqCacheNum "
        "waitTimeMillsInSendQueue osPageCacheBusyTimeOutMills debugLockEnable putMsgIndexHightWater"
    ),
    "files are allocated and made resident ahead of use, and mapped while they exist": (
        "flushLeastPagesWhenWarmMapedFile mappedFileSwapEnable commitLogForceSwapMapInterval commitLogSwapMapInterval "
        "commitLogSwapMapReserveFileNum logicQueueForceSwapMapInterval logicQueueSwapMapInterval "
        "logicQueueSwapMapReserveFileNum cleanSwapedMapInterval dataReadAheadEnable fastFailIfNoBufferInStorePool "
        "transientStorePoolSize commitIntervalCommitLog commitCommitLogLeastPages commitCommitLogThoroughInterval"
    ),
    "a pull says itself how much it wants": (
        "pullBatchMaxMessageCount maxFilterMessageSize travelCqFileNumWhenGetMessage accessMessageInMemoryHotRatio"
    ),
    "recovery begins at the last checkpoint and restores what is missing": (
        "recheckReputOffsetFromCq enableAsyncReput maxRecoveryCommitlogFiles enableAcceleratedRecovery "
        "enableLogConsumeQueueRepeatedlyBuildWhenRecover"
    ),
    "a failed flush always stops writing": "enableRunningFlagsInFlush",
    "the record version always follows the length of the topic": "autoMessageVersionOnTopicLen maxTopicLength",
    "RocketMQ does not read it either": "enableCleanExpiredOffset maxBatchDeleteFilesNum dispatchFromSenderThread",
    "delayed messages are counted in the metrics": "enableScheduleMessageStats",
    "the HA address is haListenHost": "brokerIP2",
    "the broker's other features are not there": "enablePropertyFilter rocketmqHome diskFallRecorded",
}

WITHOUT_EFFECT = {name: reason for reason, names in _REASONS.items() for name in names.split()}
