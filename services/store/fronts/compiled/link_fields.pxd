# Fields of the link between a gateway and a store (tandemmq.broker.v1): number << 3 | wire type.

cdef enum:
    # Of LinkRequest, Question and Message.
    QUESTION = 1 << 3 | 2
    QUESTION_ID = 1 << 3
    USER = 2 << 3 | 2
    SEND = 4 << 3 | 2
    TOPIC = 1 << 3 | 2
    BORN_HOST = 2 << 3 | 2
    BODY = 3 << 3 | 2
    PROPERTIES = 4 << 3 | 2
    SYS_FLAG = 5 << 3
    BORN = 6 << 3
    # Of LinkResponse, Answer and Stored.
    ANSWER = 1 << 3 | 2
    ANSWER_ID = 1 << 3
    STORED = 4 << 3 | 2
    MESSAGE_ID = 1 << 3 | 2
    TRANSACTION_ID = 2 << 3 | 2
    OFFSET = 3 << 3
    STATUS = 5 << 3 | 2
